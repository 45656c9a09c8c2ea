// Reads the text of PTX as LLVM writes it: one instruction, directive or label a line.
#include "Warp.h"

#include <cstdlib>
#include <string_view>

using namespace emulator;

namespace {

using Text = std::string_view;

Text trim(Text text) {
  size_t begin = text.find_first_not_of(" \t\r");
  if (begin == Text::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool startsWith(Text text, Text prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool consume(Text &text, Text prefix) {
  if (!startsWith(text, prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Up to the first of `ends`; what follows it stays.
Text take(Text &text, Text ends) {
  size_t end = std::min(text.find_first_of(ends), text.size());
  Text taken = trim(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

int64_t bytesOf(Text type) { // "b32"
  return std::strtoll(std::string(type.substr(1)).c_str(), nullptr, 10) / 8;
}

class Parser {
public:
  Parser(Module &module, std::string &error) : module(module), error(error) {}
  bool run(const char *text);

private:
  bool fail(const std::string &what) {
    if (error.empty())
      error = "line " + std::to_string(line) + ": " + what;
    return false;
  }
  bool parseLine(Text text);
  bool parseDirective(Text text);
  bool parseGlobal(Text text);
  bool parseVariable(Text text, int64_t &size);
  bool parseParameter(Text text);
  bool parseInstruction(Text text);
  bool parseOperands(Text name, Text text, Instruction &instruction);
  bool parseAddress(Text text, Instruction &instruction);
  bool endKernel();

  // The register called `name`, or one that holds a constant.
  uint32_t registerOf(Text name);
  uint32_t presetOf(Special special, uint64_t value);
  bool valueOf(Text text, uint32_t &index);

  Module &module;
  std::string &error;
  int32_t line = 0, place = -1;
  Kernel *kernel = nullptr;
  bool inBody = false, inDebug = false;
  std::map<std::string, uint32_t, std::less<>> registers;
  std::map<std::pair<int, uint64_t>, uint32_t> presets;
  std::map<std::string, int32_t, std::less<>> labels;
  std::vector<std::pair<size_t, std::string>> branches;
  std::map<std::string, Variable, std::less<>> variables; // in shared or local memory
  std::map<int, std::string> files;
};

uint32_t Parser::registerOf(Text name) {
  auto found = registers.find(name);
  if (found != registers.end())
    return found->second;
  return registers[std::string(name)] = kernel->registers++;
}

uint32_t Parser::presetOf(Special special, uint64_t value) {
  auto [found, isNew] = presets.try_emplace({int(special), value}, kernel->registers);
  if (isNew)
    kernel->presets.push_back({kernel->registers++, special, value});
  return found->second;
}

bool Parser::valueOf(Text text, uint32_t &index) {
  static const std::map<std::string, Special, std::less<>> specials = {
      {"%tid.x", Special::Thread},
      {"%ntid.x", Special::Threads},
      {"%ctaid.x", Special::Block},
      {"%nctaid.x", Special::Blocks}};
  if (auto found = specials.find(text); found != specials.end())
    return index = presetOf(found->second, 0), true;
  if (startsWith(text, "%") || text == "_") // which nobody reads
    return index = registerOf(text), true;
  if (auto found = variables.find(text); found != variables.end())
    return index = presetOf(Special::Constant, uint64_t(found->second.offset)), true;
  if (auto found = module.globals.find(text); found != module.globals.end()) {
    // relocate() finds it by this mark.
    index = presetOf(Special::Constant, constantMark + uint64_t(found->second.offset));
    return true;
  }
  std::string number(text);
  if (startsWith(text, "0f") || startsWith(text, "0d"))
    number = "0x" + number.substr(2);
  char *end;
  bool isNegative = startsWith(text, "-");
  uint64_t value = isNegative ? uint64_t(std::strtoll(number.c_str(), &end, 0))
                              : std::strtoull(number.c_str(), &end, 0);
  if (number.empty() || *end)
    return fail("expected a register, a variable or a number, but got '" + number + "'");
  index = presetOf(Special::Constant, value);
  return true;
}

// "[%rd1+-4]", "[variable+4]".
bool Parser::parseAddress(Text text, Instruction &instruction) {
  if (!consume(text, "[") || text.empty() || text.back() != ']')
    return fail("expected an address, but got '" + std::string(text) + "'");
  text.remove_suffix(1);
  Text base = take(text, "+");
  if (!text.empty())
    instruction.offset = std::strtoll(std::string(text).c_str(), nullptr, 10);
  if (instruction.space == Space::Param) {
    auto found = kernel->parameters.find(base);
    if (found == kernel->parameters.end())
      return fail("expected a parameter, but got '" + std::string(base) + "'");
    instruction.offset += found->second.offset;
    return true;
  }
  return valueOf(base, instruction.read[0]);
}

bool Parser::parseOperands(Text name, Text text, Instruction &instruction) {
  bool isLoad = instruction.handler == load, isStore = instruction.handler == store;
  size_t writes = 0, reads = isLoad || isStore ? 1 : 0;
  auto list = [&](Text values, bool written) {
    while (!values.empty()) {
      uint32_t index;
      if (!valueOf(take(values, ","), index))
        return false;
      if (written ? writes == 4 : reads == 5)
        return fail("expected fewer operands");
      (written ? instruction.written[writes++] : instruction.read[reads++]) = index;
    }
    return true;
  };
  bool writesFirst = !isStore && instruction.control != Control::WarpBarrier;
  bool isMove = instruction.handler == findHandler(name) && startsWith(name, "mov.b");
  for (bool first = true; !text.empty(); first = false) {
    text = trim(text);
    bool isWritten = first && writesFirst;
    if (startsWith(text, "{")) {
      text.remove_prefix(1);
      Text values = take(text, "}");
      take(text, ",");
      if (!list(values, isWritten))
        return false;
      // A register from its halves, or the other way round.
      if (isMove)
        instruction.handler = isWritten ? splitter(name) : joiner(name);
    } else if (startsWith(text, "[")) {
      size_t end = text.find(']') + 1;
      if (!parseAddress(text.substr(0, end), instruction))
        return false;
      text.remove_prefix(end);
      take(text, ",");
    } else if (!list(take(text, ","), isWritten)) {
      return false;
    }
  }
  return true;
}

bool Parser::parseInstruction(Text text) {
  if (text.back() != ';')
    return fail("expected one instruction a line, but got '" + std::string(text) + "'");
  text.remove_suffix(1);
  Instruction instruction;
  instruction.line = line;
  instruction.place = place;
  if (consume(text, "@")) {
    instruction.isGuarded = true;
    instruction.isNegated = consume(text, "!");
    instruction.guard = registerOf(take(text, " \t"));
    text = trim(text);
  }
  Text name = take(text, " \t");
  text = trim(text);
  if (name == "bra" || name == "bra.uni") {
    instruction.control = Control::Branch;
    branches.push_back({kernel->code.size(), std::string(text)});
    kernel->code.push_back(instruction);
    return true;
  }
  if (name == "ret") {
    instruction.control = Control::Return;
    kernel->code.push_back(instruction);
    return true;
  }
  Text rest = name;
  bool isLoad = startsWith(name, "ld."), isStore = startsWith(name, "st.");
  if (isLoad || isStore) {
    instruction.handler = isLoad ? load : store;
    take(rest, ".");
    Text space = take(rest, ".");
    if (space == "param" && isLoad)
      instruction.space = Space::Param;
    else if (space == "global")
      instruction.space = Space::Global;
    else if (space == "shared")
      instruction.space = Space::Shared;
    else if (space == "local")
      instruction.space = Space::Local;
    else
      return fail("expected an instruction that this emulator knows, but got '" +
                  std::string(name) + "'");
    consume(rest, "nc.");
    instruction.count = consume(rest, "v2.") ? 2 : consume(rest, "v4.") ? 4 : 1;
    instruction.isSigned = startsWith(rest, "s");
    instruction.bytes = uint8_t(bytesOf(rest));
  } else if (name == "bar.warp.sync") {
    instruction.control = Control::WarpBarrier;
  } else if (name == "shfl.sync.idx.b32") {
    instruction.control = Control::Shuffle;
    instruction.handler = shuffle;
  } else if (!(instruction.handler = findHandler(name))) {
    return fail("expected an instruction that this emulator knows, but got '" +
                std::string(name) + "'");
  }
  if (!parseOperands(name, text, instruction))
    return false;
  kernel->code.push_back(instruction);
  return true;
}

// ".param .u64 .ptr .align 1 name,"
bool Parser::parseParameter(Text text) {
  if (!text.empty() && text.back() == ',')
    text.remove_suffix(1);
  take(text, " \t");
  Text type = take(text, " \t");
  type.remove_prefix(1);
  Text name = text.substr(text.find_last_of(" \t") == Text::npos
                              ? 0
                              : text.find_last_of(" \t") + 1);
  int64_t bytes = bytesOf(type);
  if (bytes < 1)
    return fail("expected a number as parameter, but got '" + std::string(type) + "'");
  int64_t at = (kernel->parameterBytes + bytes - 1) / bytes * bytes;
  kernel->parameters[std::string(name)] = {at, bytes};
  kernel->parameterBytes = at + bytes;
  return true;
}

// ".shared .align 4 .b8 name[4096]", behind others of `size` bytes.
bool Parser::parseVariable(Text text, int64_t &size) {
  take(text, " \t");
  int64_t alignment = 1;
  if (consume(text, ".align "))
    alignment = std::strtoll(std::string(take(text, " \t")).c_str(), nullptr, 10);
  take(text, " \t");
  Text name = take(text, "[");
  int64_t bytes = std::strtoll(std::string(take(text, "]")).c_str(), nullptr, 10);
  // No further than asked: what needs more shows.
  int64_t at = (size + alignment - 1) / alignment * alignment;
  variables[std::string(name)] = {at, bytes};
  size = at + bytes;
  return true;
}

// ".global .align 8 .b8 name[16] = {0, 1, ...};"
bool Parser::parseGlobal(Text text) {
  int64_t alignment = 1;
  while (startsWith(text, ".")) {
    Text word = take(text, " \t");
    if (word == ".align")
      alignment = std::strtoll(std::string(take(text, " \t")).c_str(), nullptr, 10);
  }
  Text name = take(text, "[");
  int64_t bytes = std::strtoll(std::string(take(text, "]")).c_str(), nullptr, 10);
  size_t at = (module.constants.size() + alignment - 1) / alignment * alignment;
  module.constants.resize(at + size_t(bytes));
  module.globals[std::string(name)] = {int64_t(at), bytes};
  size_t open = text.find('{');
  if (open == Text::npos)
    return true;
  text.remove_prefix(open + 1);
  Text values = take(text, "}");
  for (size_t i = 0; !values.empty(); ++i) {
    if (int64_t(i) == bytes)
      return fail("expected " + std::to_string(bytes) + " bytes");
    module.constants[at + i] =
        uint8_t(std::strtoul(std::string(take(values, ",")).c_str(), nullptr, 10));
  }
  return true;
}

bool Parser::parseDirective(Text text) {
  if (startsWith(text, ".section")) {
    inDebug = true; // up to the end, but for files
    return true;
  }
  if (startsWith(text, ".target")) {
    take(text, " \t");
    module.target = std::string(take(text, ", \t"));
    return true;
  }
  if (startsWith(text, ".visible .entry ")) {
    take(text, " ");
    take(text, " ");
    module.kernels.emplace_back();
    kernel = &module.kernels.back();
    kernel->name = std::string(take(text, "("));
    inBody = false;
    place = -1;
    return true;
  }
  if (startsWith(text, ".visible .global") || startsWith(text, ".global") ||
      startsWith(text, ".visible .const") || startsWith(text, ".const"))
    return parseGlobal(text);
  if (startsWith(text, ".param"))
    return parseParameter(text);
  if (startsWith(text, ".shared"))
    return parseVariable(text, kernel->sharedBytes);
  if (startsWith(text, ".local"))
    return parseVariable(text, kernel->localBytes);
  if (startsWith(text, ".maxntid") || startsWith(text, ".reqntid")) {
    take(text, " \t");
    kernel->threads = std::strtoll(std::string(take(text, ",")).c_str(), nullptr, 10);
    return true;
  }
  if (startsWith(text, ".loc")) {
    take(text, " \t");
    std::string file(take(text, " \t")), number(take(text, " \t"));
    place = int32_t(module.places.size());
    module.places.push_back(file + ":" + number);
    return true;
  }
  if (startsWith(text, ".file")) {
    take(text, " \t");
    int number = std::atoi(std::string(take(text, " \t")).c_str());
    take(text, "\"");
    files[number] = std::string(take(text, "\""));
    return true;
  }
  // What says nothing of what is computed.
  for (Text known : {".version", ".address_size", ".reg", ".maxnreg", ".minnctapersm",
                     ".pragma", ".noreturn"})
    if (startsWith(text, known))
      return true;
  return fail("expected a directive that this emulator knows, but got '" +
              std::string(text) + "'");
}

bool Parser::endKernel() {
  for (const auto &[at, label] : branches) {
    auto found = labels.find(label);
    if (found == labels.end())
      return fail("expected a label, but got '" + label + "'");
    kernel->code[at].target = found->second;
  }
  branches.clear();
  labels.clear();
  registers.clear();
  presets.clear();
  variables.clear();
  kernel = nullptr;
  inBody = false;
  return true;
}

bool Parser::parseLine(Text text) {
  text = trim(text.substr(0, text.find("//")));
  if (text.empty())
    return true;
  if (startsWith(text, ".file"))
    return parseDirective(text);
  if (inDebug)
    return true;
  if (text == "{" && kernel && !inBody) {
    inBody = true;
    return true;
  }
  if (text == "}" && kernel)
    return endKernel();
  if (text == ")" || text == "(")
    return true;
  if (text.back() == ':') {
    if (kernel)
      labels[std::string(text.substr(0, text.size() - 1))] =
          int32_t(kernel->code.size());
    return true;
  }
  if (startsWith(text, "."))
    return parseDirective(text);
  if (!inBody)
    return fail("expected a directive, but got '" + std::string(text) + "'");
  return parseInstruction(text);
}

bool Parser::run(const char *text) {
  Text left(text);
  while (!left.empty()) {
    ++line;
    size_t end = std::min(left.find('\n'), left.size());
    Text one = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (!parseLine(one))
      return false;
  }
  for (std::string &where : module.places) {
    size_t colon = where.find(':');
    auto found = files.find(std::atoi(where.substr(0, colon).c_str()));
    if (found != files.end())
      where = found->second + where.substr(colon);
  }
  if (module.target.empty())
    return fail("expected a .target, but got none");
  return true;
}

} // namespace

bool emulator::parse(const char *text, Module &module, std::string &error) {
  return Parser(module, error).run(text);
}

void emulator::relocate(Module &module, uint64_t base) {
  for (Kernel &kernel : module.kernels)
    for (Preset &preset : kernel.presets)
      if (preset.special == Special::Constant && preset.value >= constantMark &&
          preset.value - constantMark < module.constants.size())
        preset.value += base - constantMark;
}
