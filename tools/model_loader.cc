#include "tools/model_loader.h"

#include <utility>

namespace inlay {
namespace {

ModelLoader& SetLoader() {
  static ModelLoader loader;
  return loader;
}

}  // namespace

const ModelLoader& TheModelLoader() {
  static const ModelLoader own = [](const std::string& path, const EngineOptions& options) {
    return LoadModel(path, options);
  };
  return ModelLoaderIsSet() ? SetLoader() : own;
}

void SetModelLoader(ModelLoader loader) { SetLoader() = std::move(loader); }

bool ModelLoaderIsSet() { return SetLoader() != nullptr; }

}  // namespace inlay
