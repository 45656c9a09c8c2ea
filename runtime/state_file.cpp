// Saved sequences. A file is
//   StateHeader
//   i32[length]  tokens
//   the runs of each page in turn (page_layout.h)
//   u32          checksum of all before
// in little-endian order.
#include "checksum.h"
#include "error.h"
#include "file.h"
#include "memory.h"
#include "page_layout.h"
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
constexpr uint32_t version = 1;

struct StateHeader {
  char magic[8];
  uint32_t version;
  uint32_t headerBytes;
  uint8_t identity[KVC_IDENTITY_BYTES];
  char layout[32]; // of the library, cut to 31 characters
  int64_t length;
};
static_assert(sizeof(StateHeader) == 88, "no padding");

StateHeader headerOf(const kvc_session *session, int64_t length) {
  const kvc_library *library = session->model->library;
  StateHeader header = {};
  memcpy(header.magic, magic, sizeof magic);
  header.version = version;
  header.headerBytes = sizeof header;
  memcpy(header.identity, library->identity, sizeof header.identity);
  snprintf(header.layout, sizeof header.layout, "%s", library->layout);
  header.length = length;
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

// Calls visit(page, used) for each page of a sequence of `length` positions.
template <typename Visit>
void forEachPage(const kvc_session *session, int64_t sequence, int64_t length,
                 Visit visit) {
  int64_t positions = session->pool.positions;
  for (int64_t first = 0; first < length; first += positions)
    visit(pagesOf(session, sequence)[first / positions],
          length - first < positions ? length - first : positions);
}

// What an error of a stream or of the system means.
const char *reasonOf(int error) {
  return error == Stream::endOfFile ? "it ends too early" : strerror(error);
}

void writeState(const kvc_session *session, int64_t sequence, Stream *stream) {
  const CachePool &pool = session->pool;
  int64_t length = session->lengths[sequence];
  StateHeader header = headerOf(session, length);
  stream->write(&header, sizeof header);
  forEachPage(session, sequence, length, [&](int64_t page, int64_t used) {
    stream->write(tokensOf(pool, page), used * int64_t(sizeof(int32_t)));
  });
  forEachPage(session, sequence, length, [&](int64_t page, int64_t used) {
    forEachRun(session->model->library, used, [&](int64_t at, int64_t bytes) {
      stream->write(pool.memory.address + page + at, bytes);
    });
  });
  uint32_t sum = stream->sum;
  stream->write(&sum, sizeof sum);
  stream->flush();
}

kvc_status checkHeader(const kvc_session *session, const StateHeader &header,
                       int64_t fileBytes, const char *path) {
  StateHeader expected = headerOf(session, header.length);
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
  int64_t each =
      session->model->cacheBytesPerPosition + int64_t(sizeof(int32_t));
  int64_t around = sizeof header + sizeof(uint32_t), bytes;
  if (header.length < 0 || !multiply(header.length, each, &bytes) ||
      !add(bytes, around, &bytes) || bytes != fileBytes)
    return fail(KVC_IO,
                "%s: expected %lld positions of %lld bytes and %lld bytes "
                "around them, but the file has %lld",
                path, static_cast<long long>(header.length),
                static_cast<long long>(each), static_cast<long long>(around),
                static_cast<long long>(fileBytes));
  return KVC_OK;
}

kvc_status checkRoom(const kvc_session *session, int64_t sequence,
                     int64_t length) {
  if (length > session->capacity)
    return fail(KVC_OUT_OF_CAPACITY,
                "sequence %lld has %lld positions and the saved one takes %lld",
                static_cast<long long>(sequence),
                static_cast<long long>(session->capacity),
                static_cast<long long>(length));
  if (pagesFor(session, length) > session->pool.freeCount)
    return fail(KVC_OUT_OF_CAPACITY,
                "the pool has %lld of %lld pages free and the call takes %lld",
                static_cast<long long>(session->pool.freeCount),
                static_cast<long long>(session->pool.pageCount),
                static_cast<long long>(pagesFor(session, length)));
  return KVC_OK;
}

// Reads what stands behind the header into the sequence's pages.
kvc_status readBody(kvc_session *session, int64_t sequence, int64_t length,
                    Stream *stream, const char *path) {
  const CachePool &pool = session->pool;
  const kvc_library *library = session->model->library;
  forEachPage(session, sequence, length, [&](int64_t page, int64_t used) {
    stream->read(tokensOf(pool, page), used * int64_t(sizeof(int32_t)));
  });
  forEachPage(session, sequence, length, [&](int64_t page, int64_t used) {
    forEachRun(library, used, [&](int64_t at, int64_t bytes) {
      stream->read(pool.memory.address + page + at, bytes);
    });
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
  const CachePool &pool = session->pool;
  int64_t vocab = session->model->library->vocab;
  for (int64_t i = 0; i < session->lengths[sequence]; ++i) {
    int64_t page = pagesOf(session, sequence)[i / pool.positions];
    int32_t token = tokensOf(pool, page)[i % pool.positions];
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
  if (kvc_status status = checkRoom(session, sequence, header.length))
    return status;
  takePagesToAppend(session, sequence, header.length);
  session->lengths[sequence] = session->computed[sequence] = header.length;
  kvc_status status =
      readBody(session, sequence, header.length, stream, path);
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
