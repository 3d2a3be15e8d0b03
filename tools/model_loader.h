// How commands load their models.
#ifndef INLAY_TOOLS_MODEL_LOADER_H_
#define INLAY_TOOLS_MODEL_LOADER_H_

#include "gemma_like/load_model.h"

namespace inlay {

// LoadModel, unless a program has set another way: one of several ranks loads at all of them.
const ModelLoader& TheModelLoader();

// To be called before and after the command runs; an empty one stands for LoadModel.
void SetModelLoader(ModelLoader loader);
bool ModelLoaderIsSet();

}  // namespace inlay

#endif  // INLAY_TOOLS_MODEL_LOADER_H_
