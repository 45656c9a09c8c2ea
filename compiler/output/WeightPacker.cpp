// File format: https://github.com/huggingface/safetensors (u64 length of the
// header, JSON header, data section). The header is padded with blanks so that
// the data section starts at a multiple of 64 bytes.
#include "compiler/output/WeightPacker.h"
#include "compiler/output/NarrowFloats.h"
#include "compiler/output/Version.h"
#include "compiler/output/WriteFile.h"
#include "compiler/ElementTypes.h"
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
// number has been checked: the packed type can hold it.
template <typename Number> class LayerReader {
public:
  LayerReader(const WeightFile &file, WeightOp weight, llvm::StringRef name,
              bool allowNonfinite)
      : file(file), weight(weight), layerShape(weight.getLayerShape()),
        type(elementTypeOf(weight.getWeightType().getElementType())),
        allowNonfinite(allowNonfinite), name(name) {
    rows = layerShape[0];
    columns = layerShape.size() == 2 ? layerShape[1] : 1;
  }

  // Finds the file's shape of the tensor and checks that it holds our rows.
  llvm::Error open();

  // Row `row` (an element of a vector), in half order where heads are paired.
  llvm::Error readRow(int64_t row, Number *out);

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
  // An error about `value`, the file's element `index`.
  llvm::Error reject(double value, int64_t index) const;

  const WeightFile &file;
  WeightOp weight;
  llvm::ArrayRef<int64_t> layerShape;
  ElementType type;
  bool allowNonfinite;
  std::string name;
  std::vector<int64_t> fileShape;
  int64_t rows, columns;
  std::vector<Number> whole; // a transposed tensor or a vector
};

template <typename Number>
llvm::Error LayerReader<Number>::open() {
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
  whole.resize(*elementCount(fileShape));
  return file.read(name, fileShape, 0, whole.size(), whole.data());
}

template <typename Number>
llvm::Error LayerReader<Number>::reject(double value, int64_t index) const {
  std::vector<int64_t> at(fileShape.size());
  for (size_t axis = at.size(); axis-- != 0; index /= fileShape[axis])
    at[axis] = index % fileShape[axis];
  std::string message;
  llvm::raw_string_ostream os(message);
  if (std::isfinite(value))
    os << "expected numbers that " << infoOf(type).name << " can hold";
  else
    os << "expected finite numbers (or --allow-nonfinite-weights)";
  os << ", but got " << llvm::format("%.9g", value) << " at " << printShape(at);
  return fail(message);
}

template <typename Number>
llvm::Error LayerReader<Number>::readRow(int64_t row, Number *out) {
  int64_t first = fileRow(row) * columns, stride = 1;
  if (whole.empty()) {
    if (llvm::Error error = file.read(name, fileShape, first, columns, out))
      return error;
  } else {
    first = fileRow(row);
    stride = fileShape.back();
    for (int64_t c = 0; c != columns; ++c)
      out[c] = whole[first + c * stride];
  }
  if (fit(type, llvm::ArrayRef<Number>(out, columns)))
    return llvm::Error::success();
  for (int64_t c = 0; c != columns; ++c)
    if (!fit<Number>(type, out[c]) && (std::isfinite(out[c]) || !allowNonfinite))
      return reject(out[c], first + c * stride);
  return llvm::Error::success();
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

// Stores `numbers`, rounded to `type`, `stride` elements apart.
template <typename Number>
void store(ElementType type, llvm::ArrayRef<Number> numbers, char *to,
           int64_t stride) {
  auto each = [&](auto round) {
    for (Number number : numbers) {
      auto rounded = round(number);
      std::memcpy(to, &rounded, sizeof(rounded));
      to += stride * sizeof(rounded);
    }
  };
  switch (type) {
  case ElementType::F64:
    return each([](double x) { return x; });
  case ElementType::F32:
    return each([](Number x) { return float(x); });
  case ElementType::F16:
    return each([](Number x) { return toF16(float(x)); });
  case ElementType::BF16:
    return each([](Number x) { return toBF16(float(x)); });
  case ElementType::Q8_0:
  case ElementType::Q4_0:
  case ElementType::Q4_1:
    break;
  }
  llvm_unreachable("the IR has no weights in blocks");
}

// Writes one layer of `weight` in its packed shape.
template <typename Number>
llvm::Error writeLayer(LayerReader<Number> reader, WeightOp weight,
                       DataWriter &writer) {
  if (llvm::Error error = reader.open())
    return error;
  ElementType type = elementTypeOf(weight.getWeightType().getElementType());
  int64_t bytes = infoOf(type).bytes;
  llvm::ArrayRef<int64_t> shape = weight.getLayerShape();
  int64_t rows = shape[0], columns = shape.size() == 2 ? shape[1] : 1;
  int64_t panel = std::max<int64_t>(weight.getPacking()->getPanel(), 1);
  std::vector<Number> row(columns);
  std::vector<char> block(columns * panel * bytes); // [columns][panel]
  for (int64_t first = 0; first < rows; first += panel) {
    // rows behind the last are zero
    std::fill(block.begin(), block.end(), 0);
    for (int64_t lane = 0; lane < std::min(panel, rows - first); ++lane) {
      if (llvm::Error error = reader.readRow(first + lane, row.data()))
        return error;
      store<Number>(type, row, block.data() + lane * bytes, panel);
    }
    writer.bytes(block.data(), block.size());
  }
  return llvm::Error::success();
}

llvm::Error writeWeight(const WeightFile &file, WeightOp weight,
                        bool allowNonfinite, DataWriter &writer) {
  for (int64_t layer = 0; layer != weight.getLayers(); ++layer) {
    std::string name = weight.getSource().str();
    size_t brace = name.find("{}");
    if (brace != std::string::npos)
      name.replace(brace, 2, std::to_string(layer));
    auto write = [&](auto number) {
      return writeLayer(
          LayerReader<decltype(number)>(file, weight, name, allowNonfinite),
          weight, writer);
    };
    if (llvm::Error error = file.isFloat(name) ? write(float()) : write(double()))
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
      mlir::RankedTensorType type = weight.getWeightType();
      entry(weight.getSymName(), infoOf(elementTypeOf(type.getElementType())).name,
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
    if (llvm::Error error = writeWeight(**file, weight, allowNonfinite, writer))
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
