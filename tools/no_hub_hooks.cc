// In place of tools/hub_hooks.cc, in a program that gets nothing from a hub. It includes nothing,
// so that it compiles where Inlay is installed, too.
namespace inlay {

struct HubHooks;
const HubHooks* FindHubHooks();

const HubHooks* FindHubHooks() { return nullptr; }

}  // namespace inlay
