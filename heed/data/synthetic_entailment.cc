// Synthetic entailment pairs: does the second sentence follow from the first? The hypothesis is drawn independently of the label, so
// that it alone reveals nothing; the premise is then chosen to fit.
#include <array>

#include "heed/data/synthetic_text.h"

namespace heed {
namespace {

constexpr std::array<const char*, 24> kNames = {"Anna", "Ben",   "Clara", "David", "Emma",  "Felix",  "Grace", "Hugo",
                                                "Ida",  "Jonas", "Karla", "Leo",   "Marie", "Nils",   "Olga",  "Paul",
                                                "Rosa", "Simon", "Tara",  "Uwe",   "Vera",  "Walter", "Yara",  "Zoe"};
constexpr std::array<const char*, 18> kTrades = {"baker",   "singer",  "doctor", "painter", "farmer",   "lawyer",
                                                 "teacher", "sailor",  "artist", "writer",  "dancer",   "judge",
                                                 "driver",  "builder", "actor",  "swimmer", "engineer", "weaver"};
struct Relation {
  const char *more, *less;
};
constexpr std::array<Relation, 6> kRelations = {{{"taller", "shorter"},
                                                 {"older", "younger"},
                                                 {"faster", "slower"},
                                                 {"richer", "poorer"},
                                                 {"stronger", "weaker"},
                                                 {"louder", "quieter"}}};

struct Family {
  const char *all, *kind;
  std::array<const char*, 5> members;
};
constexpr std::array<Family, 8> kFamilies = {{{"animal", "bird", {"sparrow", "owl", "gull", "robin", "heron"}},
                                              {"animal", "dog", {"poodle", "beagle", "terrier", "collie", "spaniel"}},
                                              {"plant", "tree", {"oak", "birch", "maple", "elm", "willow"}},
                                              {"plant", "flower", {"rose", "tulip", "lily", "daisy", "violet"}},
                                              {"object", "tool", {"hammer", "saw", "drill", "wrench", "chisel"}},
                                              {"object", "vehicle", {"bus", "truck", "tractor", "bicycle", "van"}},
                                              {"object", "instrument", {"violin", "flute", "trumpet", "cello", "harp"}},
                                              {"object", "garment", {"coat", "shirt", "skirt", "jacket", "scarf"}}}};
constexpr std::array<const char*, 6> kVerbs = {"sees", "owns", "draws", "buys", "finds", "paints"};

struct Pair {
  std::string premise, hypothesis;
};

// A is taller than B, B is taller than C.
Pair transitive(Draw& draw, bool follows) {
  const Relation& relation = kRelations[draw.below(kRelations.size())];
  const std::string a = draw.of(kNames), b = draw.other(kNames, a);
  std::string c = draw.other(kNames, a);
  while (c == b) c = draw.other(kNames, a);
  const auto say = [&](const std::string& more, const std::string& less) {
    return draw.coin() ? more + " is " + relation.more + " than " + less + "." : less + " is " + relation.less + " than " + more + ".";
  };
  const std::string hypothesis = say(a, b);
  std::string first, second;
  if (follows)
    first = say(a, c), second = say(c, b);
  else if (draw.coin())
    first = say(b, c), second = say(c, a);
  else if (draw.coin())
    first = say(a, c), second = say(b, c);  // the two are not comparable
  else
    first = say(c, a), second = say(c, b);
  return {draw.coin() ? first + " " + second : second + " " + first, hypothesis};
}

std::string is(const std::string& name, bool yes, const std::string& trade) {
  return name + " is " + (yes ? "" : "not ") + with_article(trade) + ".";
}

// Premise: "all bakers are singers" or "no baker is a singer", and "Anna is a baker". Hypothesis: whether Anna is a singer.
Pair quantified(Draw& draw, bool follows) {
  const std::string name = draw.of(kNames), trade = draw.of(kTrades), known_trade = draw.other(kTrades, trade);
  const bool yes = draw.coin();
  const std::string hypothesis = is(name, yes, trade);
  std::string rule, fact = is(name, true, known_trade);
  if (follows) {
    rule = (yes ? "All " : "No ") + known_trade + "s are " + trade + "s.";
  } else if (draw.coin()) {
    rule = (yes ? "No " : "All ") + known_trade + "s are " + trade + "s.";
  } else if (draw.coin()) {
    rule = (draw.coin() ? "Some " : "Many ") + known_trade + "s are " + (yes ? "" : "not ") + trade + "s.";
  } else {
    // The converse, or denying the antecedent.
    rule = yes ? "All " + trade + "s are " + known_trade + "s." : "All " + known_trade + "s are " + trade + "s.";
    if (!yes) fact = is(name, false, known_trade);
  }
  return {draw.coin() ? rule + " " + fact : fact + " " + rule, hypothesis};
}

// Some painters are bakers, all bakers are singers.
Pair syllogism(Draw& draw, bool follows) {
  const std::string a = draw.of(kTrades), b = draw.other(kTrades, a);
  std::string middle = draw.other(kTrades, a);
  while (middle == b) middle = draw.other(kTrades, a);
  const std::string word = draw.coin() ? "All " : "Some ";
  const auto say = [](const std::string& how_many, const std::string& x, const std::string& y) {
    return how_many + x + "s are " + y + "s.";
  };
  std::string first, second;
  if (follows)
    first = say(word, a, middle), second = say("All ", middle, b);
  else if (draw.coin())
    first = say(word, a, middle), second = say("Some ", middle, b);
  else
    first = say(word == "All " ? "Some " : "No ", a, middle), second = say("All ", middle, b);
  return {draw.coin() ? first + " " + second : second + " " + first, say(word, a, b)};
}

// Two negations cancel.
Pair negated(Draw& draw, bool follows) {
  const std::string name = draw.of(kNames), trade = draw.of(kTrades);
  const bool yes = draw.coin();
  bool says = yes == follows;
  std::string begin;
  for (uint64_t times = draw.below(3); times > 0; --times) {
    begin += begin.empty() ? "It is not true that " : "it is wrong that ";
    says = !says;
  }
  std::string premise = begin + is(name, says, trade);
  if (draw.coin()) {
    const std::string someone = draw.other(kNames, name), work = draw.of(kTrades);
    const std::string extra = is(someone, draw.coin(), work);
    premise = draw.coin() ? extra + " " + premise : premise + " " + extra;
  }
  return {premise, is(name, yes, trade)};
}

// Hypernyms: a sparrow is a bird is an animal; "no bird" implies "no sparrow".
Pair kinds(Draw& draw, bool follows) {
  const Family& family = kFamilies[draw.below(kFamilies.size())];
  const Family* other = &kFamilies[draw.below(kFamilies.size())];
  while (std::string(other->all) == family.all) other = &kFamilies[draw.below(kFamilies.size())];
  const std::string name = draw.of(kNames), verb = draw.of(kVerbs), member = draw.of(family.members), kind = family.kind;
  const bool yes = draw.coin(), special = draw.coin();
  const auto some = [&](const std::string& what) { return yes ? with_article(what) : std::string("no ").append(what); };
  const auto say = [&](const std::string& what) { return name + " " + verb + " " + some(what); };
  const std::string hypothesis = say(special ? member : kind) + ".";
  const std::string elsewhere = draw.of(other->members), sibling = draw.other(family.members, member);
  std::string premise;
  if (yes && !special)
    premise = say(follows ? draw.of(family.members) : draw.coin() ? family.all : elsewhere);
  else if (yes)
    premise = say(follows ? member : draw.coin() ? kind : sibling);
  else if (special)
    premise = say(follows ? (draw.coin() ? kind : family.all) : draw.coin() ? sibling : elsewhere);
  else
    premise = say(follows ? family.all : draw.coin() ? draw.of(family.members) : elsewhere);
  if (draw.coin() || (yes && special && follows)) premise.append(" and ").append(some(draw.other(other->members, elsewhere)));
  return {premise + ".", hypothesis};
}

LabelledText entailment(Draw draw, bool follows) {
  constexpr std::array<Pair (*)(Draw&, bool), 5> rules = {transitive, quantified, syllogism, negated, kinds};
  Pair pair = rules[draw.below(rules.size())](draw, follows);
  return {.text = std::move(pair.premise), .pair = std::move(pair.hypothesis), .label = follows ? "follows" : "does not follow"};
}

}  // namespace

std::vector<LabelledText> synthetic_entailment(int64_t count, uint64_t seed, DataPart part) {
  return synthetic_texts(count, seed, part, entailment);
}

}  // namespace heed
