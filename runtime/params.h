// Values as callers give them. Structs carry their size, so that an application
// built against an older kvc.h, whose structs end earlier, or against a newer one
// goes on working.
#ifndef KVC_RUNTIME_PARAMS_H
#define KVC_RUNTIME_PARAMS_H

#include "error.h"

#include <string.h>

namespace kvc {

// Bytes of each struct in the first version, 0.1.0. Fields are added at the end,
// so that these numbers stay, and zero is the default of each.
template <typename T> constexpr uint32_t firstSize = 0;
template <> inline constexpr uint32_t firstSize<kvc_model_params> = 16;
template <> inline constexpr uint32_t firstSize<kvc_model_info> = 176;
template <> inline constexpr uint32_t firstSize<kvc_session_params> = 56;
template <> inline constexpr uint32_t firstSize<kvc_session_info> = 104;
template <> inline constexpr uint32_t firstSize<kvc_sequence_info> = 48;
template <> inline constexpr uint32_t firstSize<kvc_plan_info> = 48;
template <> inline constexpr uint32_t firstSize<kvc_sampler_params> = 48;

// More than any version's struct has: what is no size at all shows as such.
constexpr uint32_t mostSize = 1024;

template <typename T> bool isSize(size_t size) {
  static_assert(firstSize<T> > 0 && firstSize<T> <= sizeof(T), "");
  return size >= firstSize<T> && size <= mostSize && size % alignof(T) == 0;
}

// What each kvc_<struct>_init_sized does.
template <typename T>
kvc_status initSized(T *given, size_t size, const char *argument,
                     const char *type) {
  if (!given)
    return failNull(argument);
  if (!isSize<T>(size))
    return fail(KVC_INVALID_ARGUMENT,
                "expected size to be that of %s (a multiple of %zu in %u..%u), "
                "but got %zu",
                type, alignof(T), firstSize<T>, mostSize, size);
  memset(given, 0, size);
  given->size = uint32_t(size);
  return KVC_OK;
}

inline bool isZero(const void *begin, size_t bytes) {
  auto *byte = static_cast<const unsigned char *>(begin);
  return bytes == 0 || (*byte == 0 && memcmp(byte, byte + 1, bytes - 1) == 0);
}

// The bytes of a caller's struct that both sides know of, in *known. A newer
// caller's struct is longer, and fine while nothing new is used in it.
template <typename T>
kvc_status checkSize(const T *given, const char *type, size_t *known) {
  uint32_t size = given->size;
  if (!isSize<T>(size))
    return fail(KVC_INVALID_ARGUMENT,
                "expected %s.size to be set by its init function (a multiple "
                "of %zu in %u..%u), but got %u",
                type, alignof(T), firstSize<T>, mostSize, size);
  const auto *bytes = reinterpret_cast<const unsigned char *>(given);
  for (uint32_t i = sizeof(T); i < size; ++i)
    if (bytes[i])
      return fail(KVC_INVALID_ARGUMENT,
                  "expected %s to be zero behind the %zu bytes that this "
                  "version knows, but byte %u is %d",
                  type, sizeof(T), i, bytes[i]);
  *known = size < sizeof(T) ? size : sizeof(T);
  return KVC_OK;
}

// Copies the fields that the caller knows of, and sets the others to zero.
template <typename T>
kvc_status readParams(T *params, const T *given, const char *type) {
  size_t known;
  *params = {};
  if (!given || isZero(given, firstSize<T>))
    return KVC_OK;
  if (kvc_status status = checkSize(given, type, &known))
    return status;
  memcpy(params, given, known);
  return KVC_OK;
}

// Gives the caller the fields that it knows of.
template <typename T>
kvc_status writeInfo(T *out_info, const T &info, const char *type) {
  size_t known;
  if (kvc_status status = checkSize(out_info, type, &known))
    return status;
  uint32_t size = out_info->size;
  memcpy(out_info, &info, known);
  out_info->size = size;
  return KVC_OK;
}

// The value of an enum that a C caller set, which may be any int: C++ knows no
// others than the enumerators' range, so that it must not be loaded as an enum.
template <typename Enum> int valueOf(const Enum &given) {
  static_assert(sizeof given == sizeof(int), "C's enums are ints");
  int value;
  memcpy(&value, &given, sizeof value);
  return value;
}

} // namespace kvc

#endif
