// kvc-sequences DIR DENSE_DIR [OPERATIONS]: random operations on the sequences
// of two sessions of a compiled model against a dense oracle, the same model in
// memory that keeps all, which computes a sequence's logits and cells at once from
// nothing but its tokens. After each operation the cells of every sequence must
// have the oracle's bits, and the rows of logits that came out, too. Cache and
// workspace start as NaN; the runtime's memory comes from an allocator that
// counts and can fail. The first difference ends the program.
#include "compiled_model.h"
#include "page_table.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <unistd.h>
#include <vector>

namespace {

using Tokens = std::vector<int32_t>;
using Bytes = std::vector<char>;

constexpr int64_t kCapacity = 60;

// How often each thing happened, by name.
std::map<std::string, int64_t> seen;

// The runtime's memory.
int64_t blocks = 0;
int64_t failsAfter = -1; // allocations that still succeed; -1: all

void *allocate(void *, int64_t bytes) {
  if (failsAfter >= 0 && failsAfter-- == 0)
    return nullptr;
  ++blocks;
  return aligned_alloc(64, size_t(bytes + 63) / 64 * 64);
}

void release(void *, void *memory) {
  --blocks;
  free(memory);
}

kvc_session *create(kvc_model *model, int64_t sequences, int32_t threads,
                    int64_t pages) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = sequences;
  params.capacity = std::min(kCapacity, model->library->capacity);
  params.threads = threads;
  params.poison = 1;
  params.pool_pages = pages;
  kvc_session *session = nullptr;
  must(kvc_session_create(model, &params, &session));
  return session;
}

kvc_session_info report(const kvc_session *session) {
  kvc_session_info info;
  kvc_session_info_init(&info);
  must(kvc_session_query(session, &info));
  return info;
}

// Keys and values of a sequence, group by group and position by position, whatever
// the layout: see kvc_group. Of a group with a window in `library` they are those that
// the next token finds.
Bytes cellsOf(const kvc_session *session, int64_t sequence,
              const kvc_library *library) {
  Bytes cells;
  for (const kvc::PagePool &pool : kvc::groupPools(session)) {
    const kvc_group &group = *pool.group;
    int64_t positions = group.positions_per_page;
    int64_t window = library->groups[&pool - session->pools].window;
    int64_t first = std::max<int64_t>(
        0, window ? session->lengths[sequence] - window + 1 : 0);
    for (int64_t p = first; p < session->lengths[sequence]; ++p) {
      const char *page =
          pool.memory + kvc::pagesOf(pool, sequence)[p / positions %
                                                     group.pages_per_sequence];
      int64_t at = p % positions;
      for (int64_t i = 0; i < group.sections_count; ++i) {
        const kvc_section &s = group.sections[i];
        for (int64_t row = 0; row < s.rows; ++row)
          for (int64_t piece = 0; piece < s.pieces; ++piece) {
            int64_t unit = row * (positions / s.lanes) + at / s.lanes;
            int64_t place = (unit * s.pieces + piece) * s.lanes + at % s.lanes;
            const char *from = page + s.offset + place * s.bytes;
            cells.insert(cells.end(), from, from + s.bytes);
          }
      }
    }
  }
  return cells;
}

struct Sequence {
  Tokens tokens;
  Bytes cells;
  int64_t length() const { return int64_t(tokens.size()); }
};

struct World {
  kvc_session *session;
  std::vector<Sequence> sequences;
};

class Test {
public:
  Test(const CompiledModel &compiled, const CompiledModel &denseModel,
       std::string path)
      : compiled(compiled), path(std::move(path)) {
    // The second session's pool holds about half of what its sequences can.
    int64_t pages =
        2 * kvc::pagesOfRange(compiled.library->groups[0], 0, kCapacity);
    worlds = {{create(compiled.model, 6, 1, 0), std::vector<Sequence>(6)},
              {create(compiled.model, 4, 2, pages), std::vector<Sequence>(4)}};
    dense = create(denseModel.model, 1, 1, 0);
    capacity = dense->capacity;
  }

  void run(int64_t operations) {
    for (int64_t i = 0; i < operations; ++i) {
      std::string what = step();
      ++seen[what];
      for (World &world : worlds)
        check(world, what);
    }
    for (World &world : worlds) {
      must(kvc_session_reset(world.session));
      kvc_session_info info = report(world.session);
      printf("pages at the end: %lld of %lld live\n",
             (long long)info.live_pages, (long long)info.pages);
      kvc_session_destroy(world.session);
    }
    kvc_session_destroy(dense);
  }

private:
  const CompiledModel &compiled;
  std::string path; // of the saved sequence
  int64_t capacity;
  std::vector<World> worlds;
  kvc_session *dense;
  std::mt19937_64 random{1};

  int64_t below(int64_t bound) { return int64_t(random() % uint64_t(bound)); }

  int32_t token() { return int32_t(below(compiled.library->vocab)); }

  // The tokens' cells, and their rows of logits.
  Bytes recompute(Sequence &sequence) {
    must(kvc_session_reset(dense));
    Bytes rows(size_t(sequence.length() * compiled.rowBytes));
    kvc_chunk all = {0, sequence.tokens.data(), sequence.length(),
                     KVC_OUTPUTS_ALL};
    if (sequence.length())
      must(kvc_forward(dense, &all, 1, rows.data(), sequence.length()));
    sequence.cells = cellsOf(dense, 0, compiled.library);
    return rows;
  }

  void check(const World &world, const std::string &what) {
    for (size_t s = 0; s < world.sequences.size(); ++s) {
      const Sequence &expected = world.sequences[s];
      Tokens tokens(expected.tokens.size());
      int64_t length = 0;
      must(kvc_sequence_length(world.session, int64_t(s), &length));
      if (length != expected.length())
        die("%s: sequence %zu has length %lld, expected %zu", what.c_str(), s,
            (long long)length, expected.tokens.size());
      must(kvc_sequence_tokens(world.session, int64_t(s), 0, length,
                               tokens.data()));
      if (tokens != expected.tokens)
        die("%s: sequence %zu holds other tokens", what.c_str(), s);
      if (cellsOf(world.session, int64_t(s), compiled.library) != expected.cells)
        die("%s: the cells of sequence %zu differ", what.c_str(), s);
    }
  }

  // Appends to some sequences at once; false when it was refused.
  bool append(World &world) {
    std::vector<kvc_chunk> chunks;
    std::vector<Sequence> after = world.sequences;
    int64_t rows = 0, count = int64_t(after.size());
    for (int64_t s = below(count); s < count; s += 1 + below(3)) {
      Sequence &sequence = after[size_t(s)];
      int64_t left = capacity - sequence.length();
      if (left == 0)
        continue;
      int64_t size = 1 + below(below(8) ? std::min<int64_t>(left, 9) : left);
      for (int64_t i = 0; i < size; ++i)
        sequence.tokens.push_back(token());
      kvc_outputs outputs = below(2) ? KVC_OUTPUTS_ALL : KVC_OUTPUTS_LAST;
      chunks.push_back({s, &sequence.tokens.end()[-size], size, outputs});
      rows += outputs == KVC_OUTPUTS_ALL ? size : 1;
    }
    if (chunks.empty())
      return false;
    Bytes logits(size_t(rows * compiled.rowBytes));
    kvc_status status = kvc_forward(world.session, chunks.data(),
                                    int64_t(chunks.size()), logits.data(), rows);
    if (status == KVC_OUT_OF_CAPACITY)
      return false; // the smaller pool
    must(status);
    auto row = logits.begin();
    for (const kvc_chunk &chunk : chunks) {
      Bytes expected = recompute(after[size_t(chunk.sequence)]);
      int64_t bytes = compiled.rowBytes *
                      (chunk.outputs == KVC_OUTPUTS_ALL ? chunk.count : 1);
      if (!std::equal(expected.end() - bytes, expected.end(), row))
        die("append: logits of sequence %lld differ",
            (long long)chunk.sequence);
      row += bytes;
      seen["rows"] += bytes / compiled.rowBytes;
    }
    world.sequences = std::move(after);
    return true;
  }

  // A call that must be refused. What it left is checked as always.
  std::string fail(World &world) {
    auto expect = [](kvc_status status, kvc_status expected) {
      if (status != expected)
        die("a call gave '%s', expected '%s'", kvc_status_string(status),
            kvc_status_string(expected));
    };
    int64_t count = int64_t(world.sequences.size());
    int64_t i = below(count), j = (i + 1 + below(count - 1)) % count;
    int64_t left = capacity - world.sequences[size_t(i)].length();
    Tokens tokens(size_t(left + 1), token());
    kvc_chunk one = {j, tokens.data(), 1, KVC_OUTPUTS_NONE};
    std::vector<kvc_chunk> chunks = {one, one};
    chunks[1].sequence = i;
    auto forward = [&] {
      return kvc_forward(world.session, chunks.data(), int64_t(chunks.size()),
                         nullptr, 0);
    };
    switch (below(6)) {
    case 0:
      chunks[1].count = left + 1;
      expect(forward(), KVC_OUT_OF_CAPACITY);
      return "a chunk beyond capacity";
    case 1:
      tokens.back() = int32_t(compiled.library->vocab);
      chunks[1].tokens = &tokens.back();
      // The other chunk may have no room, which is seen first.
      chunks.erase(chunks.begin());
      expect(forward(), left ? KVC_INVALID_ARGUMENT : KVC_OUT_OF_CAPACITY);
      return "a token beyond the vocabulary";
    case 2:
      chunks[1].sequence = j;
      if (world.sequences[size_t(j)].length() == capacity)
        expect(forward(), KVC_OUT_OF_CAPACITY);
      else
        expect(forward(), KVC_INVALID_ARGUMENT);
      return "a sequence twice";
    case 3:
      expect(kvc_sequence_truncate(world.session, i, capacity - left + 1),
             KVC_INVALID_ARGUMENT);
      return "a truncation beyond the length";
    case 4:
      alterSaved(world, i);
      must(kvc_sequence_remove(world.session, j));
      world.sequences[size_t(j)] = {};
      if (kvc_sequence_restore(world.session, j, path.c_str()) == KVC_OK)
        die("an altered file was restored");
      return "an altered file";
    default:
      failsAfter = below(4);
      kvc_session *session = nullptr;
      expect(kvc_session_create(compiled.model, nullptr, &session),
             KVC_OUT_OF_MEMORY);
      failsAfter = -1;
      return "an allocation";
    }
  }

  // Saves a sequence and changes one bit of the file, or cuts it.
  void alterSaved(const World &world, int64_t sequence) {
    must(kvc_sequence_save(world.session, sequence, path.c_str()));
    FILE *file = fopen(path.c_str(), "r+b");
    fseek(file, 0, SEEK_END);
    long size = ftell(file), at = long(below(size));
    if (below(2)) {
      if (ftruncate(fileno(file), at))
        die("can't cut %s", path.c_str());
    } else {
      fseek(file, at, SEEK_SET);
      int byte = fgetc(file);
      fseek(file, at, SEEK_SET);
      fputc(byte ^ 1 << below(8), file);
    }
    fclose(file);
  }

  // Says what it did.
  std::string step() {
    World &world = worlds[size_t(below(2))], &other = worlds[size_t(below(2))];
    int64_t count = int64_t(world.sequences.size());
    int64_t i = below(count), j = below(int64_t(other.sequences.size()));
    Sequence &from = world.sequences[size_t(i)];
    switch (below(20)) {
    default:
      return append(world) ? "append" : "append without room";
    case 0:
    case 1: {
      int64_t to = below(count);
      must(kvc_sequence_fork(world.session, i, to));
      world.sequences[size_t(to)] = Sequence(from);
      return "fork";
    }
    case 2:
    case 3: {
      int64_t length = below(from.length() + 1);
      kvc_sequence_info info;
      kvc_sequence_info_init(&info);
      must(kvc_sequence_query(world.session, i, &info));
      if (length && length < info.shortest) {
        if (kvc_sequence_truncate(world.session, i, length) !=
            KVC_INVALID_ARGUMENT)
          die("a truncation to %lld was not refused", (long long)length);
        return "refused: a truncation to what is forgotten";
      }
      must(kvc_sequence_truncate(world.session, i, length));
      from.tokens.resize(size_t(length));
      recompute(from);
      return "truncate";
    }
    case 4: {
      std::vector<Sequence> before = world.sequences;
      std::vector<int64_t> order(size_t(below(count + 1)));
      for (size_t s = 0; s < order.size(); ++s) {
        order[s] = below(count);
        world.sequences[s] = before[size_t(order[s])];
      }
      must(kvc_session_reorder(world.session, order.data(),
                               int64_t(order.size())));
      return "reorder";
    }
    case 5:
      must(kvc_sequence_remove(world.session, i));
      from = {};
      return "remove";
    case 6: {
      kvc_status status =
          kvc_sequence_copy(world.session, i, other.session, j);
      if (status == KVC_OUT_OF_CAPACITY)
        return "copy without room";
      must(status);
      other.sequences[size_t(j)] = Sequence(from);
      return "copy";
    }
    case 7: {
      must(kvc_sequence_save(world.session, i, path.c_str()));
      Sequence saved = from;
      must(kvc_sequence_remove(other.session, j));
      other.sequences[size_t(j)] = {};
      kvc_status status =
          kvc_sequence_restore(other.session, j, path.c_str());
      if (status == KVC_OUT_OF_CAPACITY)
        return "restore without room";
      must(status);
      other.sequences[size_t(j)] = saved;
      return "restore";
    }
    case 8:
      if (below(20))
        return "append";
      must(kvc_session_reset(world.session));
      world.sequences.assign(world.sequences.size(), {});
      return "reset";
    case 9:
    case 10:
      return "refused: " + fail(world);
    }
  }
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4)
    die("expected kvc-sequences DIR DENSE_DIR [OPERATIONS]");
  int64_t operations = argc == 4 ? atoll(argv[3]) : 20000;
  kvc_allocator allocator = {allocate, release, nullptr};
  CompiledModel compiled(argv[1], &allocator), dense(argv[2], &allocator);
  Test(compiled, dense, std::string(argv[1]) + "/sequence.state")
      .run(operations);
  kvc_model_close(compiled.model);
  kvc_model_close(dense.model);
  printf("%lld operations on 10 sequences, %lld blocks of memory at the end\n",
         (long long)operations, (long long)blocks);
  for (const auto &[what, count] : seen)
    printf("%s: %lld\n", what.c_str(), (long long)count);
  return 0;
}
