// File format: https://github.com/huggingface/safetensors (u64 length of the
// header, JSON header, data section). The header is padded with blanks so that
// the data section starts at a multiple of 64 bytes.
#include "compiler/output/WeightPacker.h"
#include "compiler/output/NarrowFloats.h"
#include "compiler/output/Version.h"
#include "compiler/output/WriteFile.h"
#include "compiler/frontend/WeightFile.h"
#include "compiler/fuse/Packing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace kvc;

namespace {

// One layer of one weight as the IR names it, read from the model's file.
template <typename Number> class LayerReader {
public:
  LayerReader(const WeightFile &file, WeightOp weight, int64_t layer)
      : file(file), weight(weight), layerShape(weight.getLayerShape()) {
    name = weight.getSource().str();
    size_t brace = name.find("{}");
    if (brace != std::string::npos)
      name.replace(brace, 2, std::to_string(layer));
    rows = layerShape[0];
    columns = layerShape.size() == 2 ? layerShape[1] : 1;
  }

  // Reads the file's shape of the tensor and checks that it holds our rows.
  llvm::Error open();

  // Row `row` (an element of a vector), in half order where heads are paired.
  void readRow(int64_t row, Number *out);

private:
  int64_t fileRow(int64_t row) {
    if (auto width = weight.getPairedHeads()) {
      // Half order (i, i + width/2) is pair order (2i, 2i + 1) in the file.
      int64_t head = row / *width, i = row % *width, half = *width / 2;
      row = head * *width + (i < half ? 2 * i : 2 * (i - half) + 1);
    }
    return weight.getFirstRow().value_or(0) + row;
  }

  const WeightFile &file;
  WeightOp weight;
  llvm::ArrayRef<int64_t> layerShape;
  std::string name;
  std::vector<int64_t> fileShape;
  int64_t rows, columns;
  std::vector<Number> whole; // a transposed tensor or a vector
};

template <typename Number> llvm::Error LayerReader<Number>::open() {
  if (!weight.getFirstRow()) {
    // The whole tensor is ours.
    fileShape.assign(layerShape.begin(), layerShape.end());
    if (weight.getTransposed())
      std::swap(fileShape[0], fileShape[1]);
    if (llvm::Error error = file.check(name, fileShape))
      return error;
  } else {
    auto shape = file.shape(name);
    if (!shape)
      return shape.takeError();
    fileShape = std::move(*shape);
    size_t rowAxis = weight.getTransposed() ? 1 : 0;
    if (fileShape.size() != layerShape.size() ||
        fileShape[rowAxis] < rows ||
        int64_t(*weight.getFirstRow()) > fileShape[rowAxis] - rows ||
        (fileShape.size() == 2 && fileShape[1 - rowAxis] != columns))
      return llvm::createStringError(
          llvm::inconvertibleErrorCode(),
          file.path() + ": " + name + ": expected outputs " +
              llvm::Twine(*weight.getFirstRow()) + " to " +
              llvm::Twine(*weight.getFirstRow() + rows) + " of " +
              llvm::Twine(columns) + " inputs for @" + weight.getSymName() +
              ", but the file's tensor has another shape");
  }
  if (fileShape.size() == 1 || weight.getTransposed()) {
    int64_t count = 1;
    for (int64_t size : fileShape)
      count *= size;
    whole.resize(count);
    file.read(name, fileShape, 0, count, whole.data());
  }
  return llvm::Error::success();
}

template <typename Number>
void LayerReader<Number>::readRow(int64_t row, Number *out) {
  int64_t from = fileRow(row);
  if (whole.empty()) {
    file.read(name, fileShape, from * columns, columns, out);
    return;
  }
  int64_t stride = fileShape.size() == 1 ? 1 : fileShape[1];
  for (int64_t c = 0; c != columns; ++c)
    out[c] = whole[c * stride + from];
}

// Appends numbers to the data section, narrowed to a type.
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
  // False where a finite number becomes infinite.
  template <typename Number>
  bool numbers(const Number *values, size_t count, mlir::Type type) {
    if (type.isF64() || type.isF32()) {
      bytes(values, count * sizeof(Number));
      return true;
    }
    uint16_t infinity = type.isF16() ? 0x7c00 : 0x7f80;
    bool fits = true;
    narrow.resize(count);
    for (size_t i = 0; i != count; ++i) {
      float value = float(values[i]);
      narrow[i] = type.isF16() ? toF16(value) : toBF16(value);
      fits &= (narrow[i] & 0x7fff) != infinity || std::isinf(value);
    }
    bytes(narrow.data(), count * sizeof(uint16_t));
    return fits;
  }

  int64_t written = 0;
  llvm::BLAKE3 hash;

private:
  llvm::raw_ostream &os;
  std::vector<uint16_t> narrow;
};

llvm::StringRef safetensorsType(mlir::Type type) {
  return type.isF64() ? "F64" : type.isF32() ? "F32" : type.isF16() ? "F16" : "BF16";
}

// Writes every layer of `weight` in its packed shape; the type in memory is
// double for f64 and float for the others.
template <typename Number>
llvm::Error writeWeight(const WeightFile &file, WeightOp weight,
                        DataWriter &writer) {
  mlir::Type type = weight.getWeightType().getElementType();
  llvm::ArrayRef<int64_t> shape = weight.getLayerShape();
  int64_t rows = shape[0], columns = shape.size() == 2 ? shape[1] : 1;
  int64_t panel = std::max<int64_t>(weight.getPacking()->getPanel(), 1);
  std::vector<Number> row(columns), block(columns * panel);
  for (int64_t layer = 0; layer != weight.getLayers(); ++layer) {
    LayerReader<Number> reader(file, weight, layer);
    if (llvm::Error error = reader.open())
      return error;
    for (int64_t first = 0; first < rows; first += panel) {
      // [columns][panel]; rows behind the last are zero
      std::fill(block.begin(), block.end(), Number(0));
      for (int64_t lane = 0; lane < std::min(panel, rows - first); ++lane) {
        reader.readRow(first + lane, row.data());
        for (int64_t c = 0; c != columns; ++c)
          block[c * panel + lane] = row[c];
      }
      if (!writer.numbers(block.data(), block.size(), type))
        return llvm::createStringError(
            llvm::inconvertibleErrorCode(),
            file.path() + ": " + weight.getSource() +
                ": expected numbers that " + safetensorsType(type) +
                " can hold, but some of layer " + llvm::Twine(layer) +
                " become infinite");
    }
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
      mlir::RankedTensorType type = weight.getWeightType();
      entry(weight.getSymName(), safetensorsType(type.getElementType()),
            packedShape(weight), begin, end);
      padding += packedBytes(weight) -
                 type.getNumElements() * (type.getElementTypeBitWidth() / 8);
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
    llvm::Error error =
        weight.getWeightType().getElementType().isF64()
            ? writeWeight<double>(**file, weight, writer)
            : writeWeight<float>(**file, weight, writer);
    if (error)
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
