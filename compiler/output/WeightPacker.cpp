// File format: https://github.com/huggingface/safetensors (u64 length of the
// header, JSON header, data section). The header is padded with blanks so that
// the data section starts at a multiple of 64 bytes.
#include "compiler/output/WeightPacker.h"
#include "compiler/output/Version.h"
#include "compiler/output/WriteFile.h"
#include "compiler/frontend/Files.h"
#include "compiler/frontend/TensorFile.h"
#include "compiler/frontend/WeightFile.h"
#include "compiler/fuse/Packing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace kvc;

namespace {

// One layer of one weight as the IR names it, read from the model's file. Every
// number has been checked: the weight's storage can hold it.
class LayerReader {
public:
  LayerReader(const WeightFile &file, WeightOp weight, llvm::StringRef name,
              bool allowNonfinite)
      : file(file), weight(weight), from(file.storage(name)),
        to(weight.getStorage()), allowNonfinite(allowNonfinite), name(name) {
    llvm::ArrayRef<int64_t> shape = weight.getLayerShape();
    rows = shape[0];
    columns = shape.size() == 2 ? shape[1] : 1;
  }

  // Finds the file's shape of the tensor and checks that it holds our rows.
  llvm::Error open();

  // The bytes of row `row` (an element of a vector) in the weight's storage: in
  // the file itself, where it stands there so, or written to `scratch`. In half
  // order where heads are paired.
  llvm::Expected<const char *> readRow(int64_t row, std::vector<char> &scratch);

private:
  llvm::Error fail(const llvm::Twine &what) const {
    return invalid(file.path(), name + ": " + what);
  }
  int64_t fileRow(int64_t row) {
    if (auto width = weight.getPairedHeads()) {
      // Half order (i, i + width/2) is pair order (2i, 2i + 1) in the file.
      int64_t head = row / *width, i = row % *width, half = *width / 2;
      row = head * *width + (i < half ? 2 * i : 2 * (i - half) + 1);
    }
    return weight.getFirstRow().value_or(0) + row;
  }
  // f64's numbers need a double, others a float.
  template <typename Number>
  llvm::Error readNumbers(int64_t first, int64_t count, Number *out);
  template <typename Number>
  llvm::Expected<const char *> readRowAs(int64_t row,
                                         std::vector<Number> &whole,
                                         std::vector<char> &scratch);
  // An error about `value`, the file's element `index`.
  llvm::Error reject(double value, int64_t index) const;

  const WeightFile &file;
  WeightOp weight;
  const Storage *from; // the file's; null: random numbers
  const Storage &to;   // the weight's
  bool allowNonfinite;
  std::string name;
  std::vector<int64_t> fileShape;
  int64_t rows, columns;
  // A transposed tensor or a vector, as one of the two.
  std::vector<float> wholeFloat;
  std::vector<double> wholeDouble;
};

bool isWide(const Storage *storage) {
  return !storage || storage == &f64Storage;
}

llvm::Error LayerReader::open() {
  llvm::ArrayRef<int64_t> layerShape = weight.getLayerShape();
  size_t rowAxis = weight.getTransposed() ? 1 : 0;
  if (!weight.getFirstRow()) {
    // The whole tensor is ours.
    fileShape.assign(layerShape.begin(), layerShape.end());
    if (weight.getTransposed())
      std::swap(fileShape[0], fileShape[1]);
  } else {
    auto shape = file.shape(name);
    if (!shape)
      return shape.takeError();
    fileShape = std::move(*shape);
    int64_t first = *weight.getFirstRow();
    if (fileShape.size() != layerShape.size() || fileShape[rowAxis] < rows ||
        first > fileShape[rowAxis] - rows ||
        (fileShape.size() == 2 && fileShape[1 - rowAxis] != columns))
      return fail("expected outputs " + llvm::Twine(first) + " to " +
                  llvm::Twine(first + rows) + " of " + llvm::Twine(columns) +
                  " inputs for @" + weight.getSymName() + ", but got shape " +
                  printShape(fileShape));
  }
  if (llvm::Error error = file.check(name, fileShape))
    return error;
  if (fileShape.size() == 2 && !weight.getTransposed())
    return llvm::Error::success();
  int64_t count = *elementCount(fileShape);
  auto readWhole = [&](auto &whole) {
    whole.resize(count);
    return readNumbers(0, count, whole.data());
  };
  return isWide(from) ? readWhole(wholeDouble) : readWhole(wholeFloat);
}

llvm::Error LayerReader::reject(double value, int64_t index) const {
  std::vector<int64_t> at(fileShape.size());
  for (size_t axis = at.size(); axis-- != 0; index /= fileShape[axis])
    at[axis] = index % fileShape[axis];
  std::string message;
  llvm::raw_string_ostream os(message);
  if (std::isfinite(value))
    os << "expected numbers that " << to.name << " can hold";
  else
    os << "expected finite numbers (or --allow-nonfinite-weights)";
  os << ", but got " << llvm::format("%.9g", value) << " at " << printShape(at);
  return fail(message);
}

template <typename Number>
llvm::Error LayerReader::readNumbers(int64_t first, int64_t count, Number *out) {
  if constexpr (std::is_same_v<Number, double>) {
    return file.read(name, fileShape, first, count, out);
  } else {
    auto data = file.bytes(name, fileShape, first, count);
    if (!data)
      return data.takeError();
    from->decode(*data, count, out);
    return llvm::Error::success();
  }
}

template <typename Number>
llvm::Expected<const char *>
LayerReader::readRowAs(int64_t row, std::vector<Number> &whole,
                       std::vector<char> &scratch) {
  std::vector<Number> numbers(columns);
  int64_t first = fileRow(row) * columns, stride = 1;
  if (whole.empty()) {
    if (llvm::Error error = readNumbers(first, columns, numbers.data()))
      return std::move(error);
  } else {
    first = fileRow(row);
    stride = fileShape.back();
    for (int64_t c = 0; c != columns; ++c)
      numbers[c] = whole[first + c * stride];
  }
  bool fits = true; // one branch for all of them, compared side by side
  for (Number number : numbers)
    fits &= std::fabs(number) < to.limit;
  for (int64_t c = 0; !fits && c != columns; ++c)
    if (!(std::fabs(numbers[c]) < to.limit) &&
        (std::isfinite(numbers[c]) || !allowNonfinite))
      return reject(numbers[c], first + c * stride);
  if (from == &to && whole.empty())
    return file.bytes(name, fileShape, first, columns);
  scratch.resize(to.rowBytes(columns));
  if (!to.encodes())
    return fail("expected " + to.name.upper() + " for @" + weight.getSymName() +
                ", to which no number is rounded, but got " +
                (from ? from->name.upper() : "numbers"));
  to.encode(numbers.data(), columns, scratch.data());
  return scratch.data();
}

llvm::Expected<const char *> LayerReader::readRow(int64_t row,
                                                  std::vector<char> &scratch) {
  return isWide(from) ? readRowAs(row, wholeDouble, scratch)
                      : readRowAs(row, wholeFloat, scratch);
}

// Appends bytes to the data section.
class DataWriter {
public:
  explicit DataWriter(llvm::raw_ostream &os) : os(os) {}

  void bytes(const void *data, size_t size) {
    os.write(static_cast<const char *>(data), size);
    hash.update(llvm::ArrayRef(static_cast<const uint8_t *>(data), size));
    written += size;
  }
  void zeros(int64_t size) {
    llvm::SmallVector<char, 64> padding(size, 0);
    bytes(padding.data(), size);
  }

  int64_t written = 0;
  llvm::BLAKE3 hash;

private:
  llvm::raw_ostream &os;
};

// Writes one layer of `weight` in its packed shape.
llvm::Error writeLayer(LayerReader reader, WeightOp weight, DataWriter &writer) {
  if (llvm::Error error = reader.open())
    return error;
  const Storage &storage = weight.getStorage();
  llvm::ArrayRef<int64_t> shape = weight.getLayerShape();
  int64_t rows = shape[0], columns = shape.size() == 2 ? shape[1] : 1;
  int64_t panel = weight.getPacking()->getPanel();
  int64_t together = std::max<int64_t>(panel, 1);
  std::vector<std::vector<char>> scratch(together);
  std::vector<const char *> group;
  std::vector<char> packed(together * storage.packedRowBytes(columns));
  for (int64_t first = 0; first < rows; first += together) {
    group.clear();
    for (int64_t lane = 0; lane < std::min(together, rows - first); ++lane) {
      auto row = reader.readRow(first + lane, scratch[lane]);
      if (!row)
        return row.takeError();
      group.push_back(*row);
    }
    storage.pack(group, columns, together, packed.data());
    writer.bytes(packed.data(), packed.size());
  }
  return llvm::Error::success();
}

llvm::Error writeWeight(const WeightFile &file, WeightOp weight,
                        bool allowNonfinite, DataWriter &writer,
                        std::vector<std::string> &converted) {
  for (int64_t layer = 0; layer != weight.getLayers(); ++layer) {
    std::string name = weight.getTensorName(layer);
    const Storage *from = file.storage(name);
    if (from && from != &weight.getStorage() &&
        weight.getLayerShape().size() == 2)
      converted.push_back(name + " from " + from->name.str() + " to " +
                          weight.getStorage().name.str());
    if (llvm::Error error =
            writeLayer(LayerReader(file, weight, name, allowNonfinite), weight,
                       writer))
      return error;
  }
  return llvm::Error::success();
}

// The header without its length, padded so that the data starts at a multiple
// of 64 bytes. The identity is given by as many zeros.
std::string buildHeader(mlir::ModuleOp module, int64_t &dataBytes,
                        int64_t &padding) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attributeObject("__metadata__", [&] {
      json.attribute("format", "kvc");
      json.attribute("kvc_abi", std::to_string(KVC_ABI_VERSION));
      json.attribute("kvc_identity", std::string(2 * KVC_IDENTITY_BYTES, '0'));
    });
    auto entry = [&](llvm::StringRef name, llvm::StringRef type,
                     llvm::ArrayRef<int64_t> shape, int64_t begin, int64_t end) {
      json.attributeObject(name, [&] {
        json.attribute("dtype", type);
        json.attributeArray("shape", [&] {
          for (int64_t size : shape)
            json.value(size);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(begin);
          json.value(end);
        });
      });
    };
    int64_t end = 0;
    padding = 0;
    for (auto weight : module.getOps<WeightOp>()) {
      int64_t begin = weight.getPacking()->getOffset();
      // The format allows no holes: what alignment skips is a tensor, too.
      if (begin != end)
        entry("__padding__." + std::to_string(end), "U8", {begin - end}, end, begin);
      padding += begin - end;
      end = begin + packedBytes(weight);
      const Storage &storage = weight.getStorage();
      // The format knows no blocks.
      entry(weight.getSymName(),
            storage.quants ? "U8" : storage.name.upper(), packedShape(weight),
            begin, end);
      padding += packedBytes(weight) -
                 storage.rowBytes(weight.getWeightType().getNumElements());
    }
    dataBytes = end;
  });
  text.resize(llvm::alignTo(text.size() + 8, kPackedAlignment) - 8, ' ');
  return text;
}

} // namespace

llvm::Expected<PackedWeights> kvc::packWeights(mlir::ModuleOp module,
                                               llvm::StringRef architecture,
                                               int numericsVersion,
                                               bool allowNonfinite,
                                               llvm::StringRef path) {
  auto source = module->getAttrOfType<mlir::StringAttr>(kWeightsAttr);
  if (!source)
    return llvm::createStringError(
        llvm::inconvertibleErrorCode(),
        "expected the module to say where its weights are, by an attribute " +
            kWeightsAttr + " with a path or \"random:<seed>\"");
  auto file = openWeights(source.getValue());
  if (!file)
    return file.takeError();

  std::error_code code;
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::OF_None);
  if (code)
    return llvm::createFileError(path, code);
  os.SetBufferSize(1 << 20);

  PackedWeights packed;
  std::string header = buildHeader(module, packed.bytes, packed.padding);
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  os.write(length, sizeof(length));
  os << header;

  DataWriter writer(os);
  writer.hash.update((kCompilerVersion + " abi " + llvm::Twine(KVC_ABI_VERSION) +
                      " numerics " + llvm::Twine(numericsVersion) + "\n")
                         .str());
  // Frequencies are baked into code as the compiling machine's libm gives them.
  module.walk([&](RotaryOp rotary) {
    for (double frequency : rotary.getFrequencies())
      writer.hash.update(llvm::ArrayRef(
          reinterpret_cast<const uint8_t *>(&frequency), sizeof(frequency)));
  });
  writer.hash.update(architecture);
  for (auto weight : module.getOps<WeightOp>()) {
    writer.zeros(weight.getPacking()->getOffset() - writer.written);
    if (llvm::Error error = writeWeight(**file, weight, allowNonfinite, writer,
                                        packed.converted))
      return llvm::joinErrors(std::move(error), closeFile(os, path));
  }
  auto digest = writer.hash.final<KVC_IDENTITY_BYTES>();
  llvm::copy(digest, packed.identity.begin());
  std::string hex = llvm::toHex(packed.identity, /*LowerCase=*/true);
  size_t at = header.find("kvc_identity\":\"") + strlen("kvc_identity\":\"");
  os.flush();
  os.pwrite(hex.data(), hex.size(), sizeof(length) + at);
  if (llvm::Error error = closeFile(os, path))
    return error;
  return packed;
}
