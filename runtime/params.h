// Values as callers give them. Structs carry their size, so that an application
// built against an older kvc.h, whose structs end earlier, goes on working.
#ifndef KVC_RUNTIME_PARAMS_H
#define KVC_RUNTIME_PARAMS_H

#include "error.h"

#include <string.h>

namespace kvc {

template <typename T> kvc_status checkSize(uint32_t size, const char *type) {
  if (size >= sizeof(uint32_t) && size <= sizeof(T))
    return KVC_OK;
  return fail(KVC_INVALID_ARGUMENT,
              "expected %s.size to be set by its init function (at most %zu), "
              "but got %u",
              type, sizeof(T), size);
}

// Lays the fields that the caller knows of over the defaults in `params`; NULL
// leaves them.
template <typename T>
kvc_status readParams(T *params, const T *given, const char *type) {
  if (!given)
    return KVC_OK;
  if (kvc_status status = checkSize<T>(given->size, type))
    return status;
  memcpy(params, given, given->size);
  return KVC_OK;
}

// Gives the caller the fields that it knows of.
template <typename T>
kvc_status writeInfo(T *out_info, const T &info, const char *type) {
  uint32_t size = out_info->size;
  if (kvc_status status = checkSize<T>(size, type))
    return status;
  memcpy(out_info, &info, size);
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
