// kvc-sequences DIR NAME: random operations on the sequences of a compiled
// model, DIR/libNAME.so. After each append, the sequence's logits must have the
// bits of its tokens forwarded at once by a session that does nothing else.
// Cache and workspace start as NaN.
#include <kvc/kvc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <string>
#include <vector>

namespace {

using Tokens = std::vector<int32_t>;
using Bytes = std::vector<char>;

constexpr int operations = 600;

void must(kvc_status status) {
  if (status == KVC_OK)
    return;
  fprintf(stderr, "error: %s\n", kvc_last_error());
  exit(1);
}

const kvc_library *loadLibrary(const std::string &dir, const std::string &name) {
  void *library = dlopen((dir + "/lib" + name + ".so").c_str(), RTLD_NOW);
  void *symbol =
      library ? dlsym(library, (name + "_library").c_str()) : nullptr;
  if (!symbol) {
    fprintf(stderr, "error: %s\n", dlerror());
    exit(1);
  }
  return reinterpret_cast<const kvc_library *(*)()>(symbol)();
}

struct World {
  kvc_session *session;
  std::vector<Tokens> sequences;
};

class Test {
public:
  Test(const kvc_library *library, kvc_model *model, std::string path)
      : library(library), path(std::move(path)),
        capacity(library->capacity < 60 ? library->capacity : 60),
        rowBytes(library->vocab *
                 (library->arithmetic == KVC_TYPE_F64 ? 8 : 4)) {
    for (int64_t count : {6, 2})
      worlds.push_back({create(model, count), std::vector<Tokens>(count)});
    dense = create(model, 1);
  }

  ~Test() {
    for (World &world : worlds)
      kvc_session_destroy(world.session);
    kvc_session_destroy(dense);
  }

  void run() {
    for (int i = 0; i < operations; ++i)
      step(worlds[below(2)]);
    printf("rows: %d of %d bit-identical\n", same, rows);
    printf("forks %d, cuts %d, reorders %d, copies %d, restores %d\n", forks,
           cuts, reorders, copies, restores);
    int64_t live = 0;
    for (World &world : worlds) {
      must(kvc_session_reset(world.session));
      kvc_session_info info;
      kvc_session_info_init(&info);
      must(kvc_session_query(world.session, &info));
      live += info.live_pages;
    }
    printf("pages at the end: %lld\n", (long long)live);
  }

private:
  const kvc_library *library;
  std::string path; // of the saved sequence
  int64_t capacity, rowBytes;
  std::vector<World> worlds;
  kvc_session *dense;
  std::mt19937_64 random{1};
  int rows = 0, same = 0, forks = 0, cuts = 0, reorders = 0, copies = 0,
      restores = 0;

  size_t below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random);
  }

  kvc_session *create(kvc_model *model, int64_t sequences) {
    kvc_session_params params;
    kvc_session_params_init(&params);
    params.sequences = sequences;
    params.capacity = capacity;
    params.threads = 2;
    params.poison = 1;
    kvc_session *session = nullptr;
    must(kvc_session_create(model, &params, &session));
    return session;
  }

  Bytes appendTo(kvc_session *session, int64_t sequence, const Tokens &tokens) {
    Bytes row(rowBytes);
    kvc_chunk chunk = {sequence, tokens.data(), int64_t(tokens.size()),
                       KVC_OUTPUTS_LAST};
    must(kvc_forward(session, &chunk, 1, row.data(), 1));
    return row;
  }

  void append(World &world, size_t sequence) {
    Tokens &all = world.sequences[sequence];
    size_t left = size_t(capacity) - all.size();
    if (left == 0)
      return;
    Tokens chunk(1 + below(left < 9 ? left : 9));
    for (int32_t &token : chunk)
      token = int32_t(below(size_t(library->vocab)));
    Bytes row = appendTo(world.session, int64_t(sequence), chunk);
    all.insert(all.end(), chunk.begin(), chunk.end());
    must(kvc_session_reset(dense));
    ++rows;
    same += appendTo(dense, 0, all) == row;
  }

  void step(World &world) {
    size_t i = below(world.sequences.size());
    World &other = worlds[below(2)];
    size_t j = below(other.sequences.size());
    Tokens &tokens = world.sequences[i];
    switch (below(12)) {
    default:
      append(world, i);
      break;
    case 0:
      j = below(world.sequences.size());
      must(kvc_sequence_fork(world.session, int64_t(i), int64_t(j)));
      world.sequences[j] = Tokens(tokens);
      ++forks;
      break;
    case 1:
      tokens.resize(below(tokens.size() + 1));
      must(kvc_sequence_truncate(world.session, int64_t(i),
                                 int64_t(tokens.size())));
      ++cuts;
      break;
    case 2: {
      std::vector<int64_t> order;
      std::vector<Tokens> before = world.sequences;
      for (Tokens &sequence : world.sequences) {
        order.push_back(int64_t(below(before.size())));
        sequence = before[size_t(order.back())];
      }
      must(kvc_session_reorder(world.session, order.data(),
                               int64_t(order.size())));
      ++reorders;
      break;
    }
    case 3:
      must(kvc_sequence_copy(world.session, int64_t(i), other.session,
                             int64_t(j)));
      other.sequences[j] = Tokens(tokens);
      ++copies;
      break;
    case 4: {
      Tokens saved = tokens;
      must(kvc_sequence_save(world.session, int64_t(i), path.c_str()));
      must(kvc_sequence_remove(other.session, int64_t(j)));
      must(kvc_sequence_restore(other.session, int64_t(j), path.c_str()));
      other.sequences[j] = saved;
      ++restores;
    }
    }
  }
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: kvc-sequences DIR NAME\n");
    return 1;
  }
  std::string dir = argv[1], name = argv[2];
  const kvc_library *library = loadLibrary(dir, name);
  kvc_model *model = nullptr;
  must(kvc_model_open(library, (dir + "/" + name + ".safetensors").c_str(),
                      &model));
  Test(library, model, dir + "/sequence.state").run();
  kvc_model_close(model);
  return 0;
}
