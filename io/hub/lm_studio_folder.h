// The models that LM Studio keeps: FOLDER/USER/REPO/FILE.gguf.
#ifndef INLAY_IO_HUB_LM_STUDIO_FOLDER_H_
#define INLAY_IO_HUB_LM_STUDIO_FOLDER_H_

#include <string>
#include <vector>

#include "io/hub/local_model.h"

namespace inlay {

// By name: "USER/REPO:Q4_K_M", or "USER/REPO:FILE.gguf" where the file's name has no type. A folder
// that is not there has none.
std::vector<LocalModel> ListLmStudioModels(const std::string& folder);

}  // namespace inlay

#endif  // INLAY_IO_HUB_LM_STUDIO_FOLDER_H_
