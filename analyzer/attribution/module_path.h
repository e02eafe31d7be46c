// Which part of a model a block belongs to. The best answer is the qualified name of its module
// ("blocks.0.attention.qkv"), which the Python helper told; parameters, their gradients and the
// optimizer's state have it in their labels. Without the helper, and in imported snapshots, only
// the classes on the stack are known ("GPT/Block/Attention").
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_MODULE_PATH_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_MODULE_PATH_H

#include <string>
#include <string_view>

#include "replay/block.h"

namespace vramtrack {

// The qualified name; empty where it is unknown. A parameter's block belongs to the module that
// owns the parameter, wherever it was made.
std::string_view module_name(const Definitions& definitions, const Block& block);

// The classes of the modules whose forward is on the stack, outermost first.
std::string module_classes(const Definitions& definitions, StackId stack);

// The name or, where there is none, the classes; empty where neither is known.
std::string module_path(const Definitions& definitions, const Block& block);

// "parameters:blocks.0.qkv.weight" and "optimizer_state:exp_avg of blocks.0.qkv.weight" belong to
// "blocks.0.qkv". Empty for labels of anything else.
std::string_view module_in_label(std::string_view label);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_MODULE_PATH_H
