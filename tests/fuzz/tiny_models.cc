#include "tests/fuzz/tiny_models.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <utility>

#include "gemma_like/files/pack.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/generation/generate.h"
#include "io/file/atomic_file.h"
#include "ops/team.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/io/tokenizer/test_vocabulary.h"

namespace inlay {
namespace {

// What a file holds that `write` makes.
std::string BytesOf(const std::function<absl::Status(const std::string& path)>& write) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("inlay_fuzz_" + std::to_string(getpid())))
          .string();
  INLAY_FUZZ_CHECK(write(path).ok());
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(path);
  return bytes;
}

absl::Status WritePackedTo(const GgufFile& file, const ConfigEntry& config,
                           const std::string& path) {
  Team team(1);
  auto begun = AtomicFile::Create(path);
  INLAY_FUZZ_CHECK(begun.ok());
  auto written = WritePacked(file, config, team, *std::move(begun));
  INLAY_FUZZ_CHECK(written.ok());
  return written->Commit();
}

std::vector<TinyModel> MakeModels() {
  std::vector<TinyModel> models;
  for (Family& family : AllFamilies()) {
    TinyModel model{.family = family, .bytes = {}, .packed_bytes = {}, .engine = nullptr};
    model.bytes = BytesOf([&](const std::string& path) {
      return WriteSynth(family.config.synth(), {.type = WeightType::kQ8_0}, 7, path);
    });
    ParsedCopy parsed = ParseModel(model.bytes);
    INLAY_FUZZ_CHECK(parsed.file.ok());
    model.packed_bytes = BytesOf(
        [&](const std::string& path) { return WritePackedTo(*parsed.file, family.config, path); });
    // The engine keeps the file, and the file's deleter its bytes.
    std::shared_ptr<const GgufFile> file(new GgufFile(*std::move(parsed.file)),
                                         [copy = parsed.copy](const GgufFile* old) { delete old; });
    auto engine = family.config.load(std::move(file), {});
    INLAY_FUZZ_CHECK(engine.ok());
    model.engine = *std::move(engine);
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace

std::vector<TinyModel>& TinyModels() {
  static auto& models = *new std::vector<TinyModel>(MakeModels());
  return models;
}

const Tokenizer& TinyTokenizer() {
  static const Tokenizer& tokenizer = *[] {
    TestVocabulary vocabulary;
    vocabulary.scores.emplace();
    vocabulary.Add("<unk>", 2);
    vocabulary.Add("<s>", 3);
    for (char c = 'A'; vocabulary.tokens.size() < TinyModels()[0].family.vocab_size; ++c)
      vocabulary.Add(std::string(1, c), 1);
    vocabulary.ids = {{"bos_token_id", 1}, {"unknown_token_id", 0}};
    auto loaded = vocabulary.Load();
    INLAY_FUZZ_CHECK(loaded.ok());
    return loaded->release();
  }();
  return tokenizer;
}

ParsedCopy ParseModel(const std::string& bytes) {
  auto copy = std::make_shared<const AlignedCopy>(bytes.data(), bytes.size());
  auto file = GgufFile::Parse(copy->bytes(), "input");
  return {std::move(copy), std::move(file)};
}

void MustAppend(Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens,
                std::vector<float>* logits) {
  logits->resize(engine.info().vocab_size);
  const absl::Status status =
      Prefill(engine, cache, tokens, FloatRows(logits->data(), 1, logits->size()));
  INLAY_FUZZ_CHECK(status.ok());
}

}  // namespace inlay
