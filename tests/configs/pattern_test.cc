// Layer lists as types: how they are built, walked and stored by.
#include "configs/pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

namespace inlay {
namespace {

struct A {
  static constexpr char kName = 'a';
};
struct B {
  static constexpr char kName = 'b';
};
struct C {
  static constexpr char kName = 'c';
};

template <class List>
struct Model {
  using Layers = List;
};

// The names of a list's layers in order.
template <class List>
std::string SpellList() {
  std::string names;
  ForEachLayer<Model<List>>([&]<class Layer>(int index) {
    EXPECT_EQ(index, static_cast<int>(names.size()));
    names += Layer::kName;
  });
  return names;
}

TEST(PatternTest, ChainJoinsLayersAndLists) {
  EXPECT_TRUE((std::is_same_v<Chain<>, LayerList<>>));
  EXPECT_TRUE((std::is_same_v<Chain<A>, LayerList<A>>));
  EXPECT_TRUE((std::is_same_v<Chain<A, LayerList<B, C>, A>, LayerList<A, B, C, A>>));
  EXPECT_TRUE((std::is_same_v<Chain<Chain<A, B>, Chain<>, Chain<C>>, LayerList<A, B, C>>));
}

TEST(PatternTest, RepeatKeepsTheOrderForEveryCount) {
  EXPECT_EQ((SpellList<Repeat<0, A, B>>()), "");
  EXPECT_EQ((SpellList<Repeat<1, A, B>>()), "ab");
  EXPECT_EQ((SpellList<Repeat<2, A, B>>()), "abab");
  EXPECT_EQ((SpellList<Repeat<3, A, B>>()), "ababab");
  EXPECT_EQ((SpellList<Repeat<5, C>>()), "ccccc");
  EXPECT_EQ((SpellList<Repeat<2, Repeat<3, A>, B>>()), "aaabaaab");
  EXPECT_EQ((Repeat<1000, A, B, C>::kSize), 3000);
}

TEST(PatternTest, PeriodicEndsEachPeriodWithTheLast) {
  EXPECT_EQ((SpellList<Periodic<7, 3, A, B>>()), "aabaaba");
  EXPECT_EQ((SpellList<Periodic<6, 3, A, B>>()), "aabaab");
  EXPECT_EQ((SpellList<Periodic<2, 3, A, B>>()), "aa");
  EXPECT_EQ((SpellList<Periodic<3, 1, A, B>>()), "bbb");
}

TEST(PatternTest, MaskedPlacesOneKindAtTheSetBits) {
  EXPECT_EQ((SpellList<Masked<6, LayersAt(2, 5), A, B>>()), "bbabba");
  EXPECT_EQ((SpellList<Masked<7, EveryLayerAt(3), A, B>>()), "bbabbab");
  EXPECT_EQ((SpellList<Masked<1, LayersAt(0), A, B>>()), "a");
  EXPECT_EQ((SpellList<Masked<3, LayersAt(), A, B>>()), "bbb");
  EXPECT_EQ((SpellList<Masked<2, (LayersAt(0, 3, 63) >> 2), A, B>>()), "ba");
  EXPECT_EQ((SpellList<Masked<64, LayersAt(0, 63), A, B>>()), "a" + std::string(62, 'b') + "a");
}

template <char kLetter>
using ByLetter = std::conditional_t<kLetter == 'M', A, std::conditional_t<kLetter == '-', B, C>>;

TEST(PatternTest, SpelledHasALayerForEachLetter) {
  EXPECT_EQ((SpellList<Spelled<LayerLetters("M-M*-"), ByLetter>>()), "abacb");
  EXPECT_EQ((SpellList<Spelled<LayerLetters(""), ByLetter>>()), "");
}

TEST(PatternTest, DistinctLayersKeepTheOrderOfFirstAppearance) {
  EXPECT_TRUE((std::is_same_v<DistinctLayers<LayerList<B, A, B, C, A>>, LayerList<B, A, C>>));
  EXPECT_TRUE((std::is_same_v<DistinctLayers<LayerList<>>, LayerList<>>));
}

using Mixed = Model<LayerList<B, A, B, C, A>>;

TEST(PatternTest, LayerTypesAreCountedAndIndexed) {
  EXPECT_EQ((kLayerCount<Mixed::Layers, A>), 2);
  EXPECT_EQ((kLayerCount<Mixed::Layers, C>), 1);
  EXPECT_EQ((kLayerTypeIndex<Mixed, B>), 0u);
  EXPECT_EQ((kLayerTypeIndex<Mixed, A>), 1u);
  EXPECT_EQ((kLayerTypeIndex<Mixed, C>), 2u);
  std::string names;
  ForEachLayerType<Mixed>([&]<class Layer>(int index) {
    EXPECT_EQ(static_cast<size_t>(index), (kLayerTypeIndex<Mixed, Layer>));
    names += Layer::kName;
  });
  EXPECT_EQ(names, "bac");
}

template <class Layer>
struct Slot {
  int value = -1;
};

TEST(PatternTest, PerLayerHoldsOneElementForEachLayer) {
  PerLayer<Mixed, Slot> slots;
  std::string names;
  std::vector<int> ordinals;
  slots.ForEach([&]<class Layer>(LayerAt at, Slot<Layer>& slot) {
    EXPECT_EQ(slot.value, -1);  // nobody else's
    slot.value = at.index;
    names += Layer::kName;
    ordinals.push_back(at.ordinal);
  });
  EXPECT_EQ(names, "babca");
  EXPECT_EQ(ordinals, (std::vector<int>{0, 0, 1, 0, 1}));
  EXPECT_EQ(slots.Get<B>(0).value, 0);
  EXPECT_EQ(slots.Get<A>(0).value, 1);
  EXPECT_EQ(slots.Get<B>(1).value, 2);
  EXPECT_EQ(slots.Get<C>(0).value, 3);
  EXPECT_EQ(slots.Get<A>(1).value, 4);

  const PerLayer<Mixed, Slot>& read = slots;
  int sum = 0;
  read.ForEach([&]<class Layer>(LayerAt at, const Slot<Layer>& slot) {
    EXPECT_EQ(slot.value, at.index);
    sum += read.Get<Layer>(at.ordinal).value;
  });
  EXPECT_EQ(sum, 0 + 1 + 2 + 3 + 4);
}

}  // namespace
}  // namespace inlay
