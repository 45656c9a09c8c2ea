// Saved sequences. A file is
//   StateHeader
//   of tokens, and then of each group of layers, what stands in its pages, page by
//   page: the runs of the positions that it holds (page_layout.h)
//   u32 checksum of all before
// in little-endian order.
#include "checksum.h"
#include "error.h"
#include "file.h"
#include "memory.h"
#include "page_table.h"
#include "turn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

using namespace kvc;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the file's numbers are memory's");

namespace {

constexpr char magic[8] = {'k', 'v', 'c', ' ', 's', 'e', 'q', '\n'};
constexpr uint32_t version = 2;

struct StateHeader {
  char magic[8];
  uint32_t version;
  uint32_t headerBytes;
  uint8_t identity[KVC_IDENTITY_BYTES];
  char layout[32]; // of the library's first group, cut to 31 characters
  int64_t length;
  int64_t reached; // see kvc_session
};
static_assert(sizeof(StateHeader) == 96, "no padding");

StateHeader headerOf(const kvc_session *session, int64_t length,
                     int64_t reached) {
  const kvc_library *library = session->model->library;
  StateHeader header = {};
  memcpy(header.magic, magic, sizeof magic);
  header.version = version;
  header.headerBytes = sizeof header;
  memcpy(header.identity, library->identity, sizeof header.identity);
  snprintf(header.layout, sizeof header.layout, "%s", library->groups[0].layout);
  header.length = length;
  header.reached = reached;
  return header;
}

// A file that is read or written from its start to its end, through a buffer
// and with its checksum. `error` is errno of the first failure, or endOfFile.
struct Stream {
  static constexpr int endOfFile = -1;
  int file;
  int error = 0;
  uint32_t sum = 0;
  int64_t begin = 0, end = 0; // of what the buffer holds
  char buffer[16384];

  explicit Stream(int file) : file(file) {}

  void flush() {
    while (begin < end && !error) {
      ssize_t done = ::write(file, buffer + begin, size_t(end - begin));
      if (done >= 0)
        begin += done;
      else if (errno != EINTR)
        error = errno;
    }
    begin = end = 0;
  }

  void write(const void *data, int64_t bytes) {
    sum = checksum(sum, data, bytes);
    auto *from = static_cast<const char *>(data);
    while (bytes > 0 && !error) {
      if (end == int64_t(sizeof buffer))
        flush();
      int64_t room = int64_t(sizeof buffer) - end;
      int64_t count = bytes < room ? bytes : room;
      memcpy(buffer + end, from, size_t(count));
      from += count, end += count, bytes -= count;
    }
  }

  void fill() {
    ssize_t got;
    do
      got = ::read(file, buffer, sizeof buffer);
    while (got < 0 && errno == EINTR);
    error = got < 0 ? errno : got == 0 ? endOfFile : 0;
    begin = 0;
    end = got > 0 ? got : 0;
  }

  void read(void *data, int64_t bytes) {
    auto *to = static_cast<char *>(data);
    int64_t left = bytes;
    while (left > 0 && !error) {
      if (begin == end) {
        fill();
        continue;
      }
      int64_t count = left < end - begin ? left : end - begin;
      memcpy(to, buffer + begin, size_t(count));
      to += count, begin += count, left -= count;
    }
    if (!error)
      sum = checksum(sum, data, bytes);
  }
};

// Calls run(address, bytes) for all that a sequence holds: tokens first.
template <typename Run>
void forEachRunOf(const kvc_session *session, int64_t sequence, Run run) {
  auto visit = [&](const PagePool &pool) {
    forEachHeld(session, pool, sequence,
                [&](int64_t page, int64_t at, int64_t count) {
                  forEachRun(*pool.group, at, count,
                             [&](int64_t offset, int64_t bytes) {
                               run(pool.memory + page + offset, bytes);
                             });
                });
  };
  visit(tokenPool(session));
  for (const PagePool &pool : groupPools(session))
    visit(pool);
}

// What an error of a stream or of the system means.
const char *reasonOf(int error) {
  return error == Stream::endOfFile ? "it ends too early" : strerror(error);
}

void writeState(const kvc_session *session, int64_t sequence, Stream *stream) {
  StateHeader header = headerOf(session, session->lengths[sequence],
                                session->reached[sequence]);
  stream->write(&header, sizeof header);
  forEachRunOf(session, sequence, [&](const char *address, int64_t bytes) {
    stream->write(address, bytes);
  });
  uint32_t sum = stream->sum;
  stream->write(&sum, sizeof sum);
  stream->flush();
}

kvc_status checkHeader(const kvc_session *session, const StateHeader &header,
                       int64_t fileBytes, const char *path) {
  StateHeader expected = headerOf(session, header.length, header.reached);
  if (memcmp(header.magic, magic, sizeof magic) != 0)
    return fail(KVC_IO, "%s: expected a saved sequence, but got another file",
                path);
  if (header.version != version || header.headerBytes != sizeof header)
    return fail(KVC_INCOMPATIBLE,
                "%s: expected version %u with a header of %zu bytes, but got "
                "version %u with %u",
                path, version, sizeof header, header.version,
                header.headerBytes);
  // Layout is part of the identity, and said for whoever reads the message.
  if (memcmp(header.layout, expected.layout, sizeof header.layout) != 0 ||
      memcmp(header.identity, expected.identity, sizeof header.identity) != 0)
    return fail(KVC_INCOMPATIBLE,
                "%s: expected identity %016llx... with layout %s (the "
                "model's), but got %016llx... with layout %.31s",
                path, startOf(expected.identity), expected.layout,
                startOf(header.identity), header.layout);
  int64_t capacity = session->model->library->capacity;
  int64_t bytes = sizeof header + sizeof(uint32_t);
  bool isSound = header.length >= 0 && header.length <= header.reached &&
                 header.reached <= capacity &&
                 (header.length > 0 || header.reached == 0);
  for (const PagePool &pool : allPools(session)) {
    int64_t oldest = isSound ? oldestOf(*pool.group, header.reached) : 0, held;
    isSound = isSound &&
              shortestOf(*pool.group, header.reached) <= header.length &&
              multiply(header.length - oldest, bytesPerPosition(*pool.group),
                       &held) &&
              add(bytes, held, &bytes);
  }
  if (!isSound)
    return fail(KVC_IO,
                "%s: expected a length that a sequence of capacity %lld can have "
                "after it had %lld positions, but got %lld",
                path, static_cast<long long>(capacity),
                static_cast<long long>(header.reached),
                static_cast<long long>(header.length));
  if (bytes != fileBytes)
    return fail(KVC_IO,
                "%s: expected %lld positions in a file of %lld bytes, but it has "
                "%lld",
                path, static_cast<long long>(header.length),
                static_cast<long long>(bytes), static_cast<long long>(fileBytes));
  return KVC_OK;
}

kvc_status checkRoom(const kvc_session *session, int64_t sequence,
                     const StateHeader &header) {
  if (header.length > session->capacity)
    return fail(KVC_OUT_OF_CAPACITY,
                "sequence %lld has %lld positions and the saved one takes %lld",
                static_cast<long long>(sequence),
                static_cast<long long>(session->capacity),
                static_cast<long long>(header.length));
  for (const PagePool &pool : groupPools(session)) {
    int64_t oldest = oldestOf(*pool.group, header.reached);
    int64_t pages = pagesOfRange(*pool.group, oldest, header.length);
    if (kvc_status status = checkFree(session, pool, pages))
      return status;
  }
  return KVC_OK;
}

// Reads what stands behind the header into the sequence's pages.
kvc_status readBody(kvc_session *session, int64_t sequence, Stream *stream,
                    const char *path) {
  forEachRunOf(session, sequence, [&](char *address, int64_t bytes) {
    stream->read(address, bytes);
  });
  uint32_t expected = stream->sum, got = 0;
  stream->read(&got, sizeof got);
  if (stream->error)
    return failFile(path, "read it", reasonOf(stream->error));
  if (got != expected)
    return fail(KVC_IO, "%s: expected checksum %08x, but got %08x", path,
                expected, got);
  return KVC_OK;
}

kvc_status checkTokens(const kvc_session *session, int64_t sequence,
                       const char *path) {
  int64_t vocab = session->model->library->vocab;
  for (int64_t i = 0; i < session->lengths[sequence]; ++i) {
    int32_t token = tokenAt(session, sequence, i);
    if (token < 0 || token >= vocab)
      return fail(KVC_IO, "%s: expected token %lld to be in 0..%lld, but got %d",
                  path, static_cast<long long>(i),
                  static_cast<long long>(vocab - 1), token);
  }
  return KVC_OK;
}

kvc_status restore(kvc_session *session, int64_t sequence, Stream *stream,
                   int64_t fileBytes, const char *path) {
  StateHeader header = {};
  stream->read(&header, sizeof header);
  if (stream->error)
    return failFile(path, "read it", reasonOf(stream->error));
  if (kvc_status status = checkHeader(session, header, fileBytes, path))
    return status;
  if (kvc_status status = checkRoom(session, sequence, header))
    return status;
  takePagesFor(session, sequence, header.length, header.reached);
  kvc_status status = readBody(session, sequence, stream, path);
  if (status == KVC_OK)
    status = checkTokens(session, sequence, path);
  if (status != KVC_OK)
    cutSequence(session, sequence, 0);
  return status;
}

} // namespace

kvc_status kvc_sequence_save(const kvc_session *session, int64_t sequence,
                             const char *path) {
  Turn turn(session, Use::reading, sequence);
  if (turn.status != KVC_OK)
    return turn.status;
  if (kvc_status status = checkPath(path, "path"))
    return status;
  if (kvc_status status = checkReplaceable(path))
    return status;
  // In the same folder, so that it can be renamed, under a name of its own, since
  // the folder may not take a longer one than the path's, which PATH_MAX holds.
  const char *name = strrchr(path, '/');
  size_t folder = name ? size_t(name + 1 - path) : 0;
  char aside[PATH_MAX + 16];
  snprintf(aside, sizeof aside, "%.*s.kvc-XXXXXX", int(folder), path);
  int file = mkostemp(aside, O_CLOEXEC);
  if (file < 0)
    return failFile(path, "create a file beside it", reasonOf(errno));
  Stream stream(file);
  writeState(session, sequence, &stream);
  int error = stream.error;
  if (!error && fsync(file) != 0)
    error = errno;
  if (close(file) != 0 && !error)
    error = errno;
  if (!error && rename(aside, path) != 0)
    error = errno;
  if (!error)
    return KVC_OK;
  unlink(aside);
  return failFile(path, "write it", reasonOf(error));
}

kvc_status kvc_sequence_restore(kvc_session *session, int64_t sequence,
                                const char *path) {
  Turn turn(session, Use::changing, sequence);
  if (turn.status != KVC_OK)
    return turn.status;
  if (kvc_status status = checkPath(path, "path"))
    return status;
  if (session->lengths[sequence] != 0)
    return fail(KVC_INVALID_ARGUMENT,
                "expected sequence %lld to be empty, but it holds %lld tokens",
                static_cast<long long>(sequence),
                static_cast<long long>(session->lengths[sequence]));
  int file;
  int64_t bytes;
  if (kvc_status status = openFile(path, &file, &bytes))
    return status;
  Stream stream(file);
  kvc_status status =
      restore(session, sequence, &stream, bytes, ShownPath(path).text);
  close(file);
  return status;
}
