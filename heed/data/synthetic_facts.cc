// Synthetic facts about people, and questions about them. Several people share a text, so that the question must be read.
#include <algorithm>
#include <array>

#include "heed/data/draws.h"
#include "heed/data/questions.h"

namespace heed {
namespace {

constexpr std::array<const char*, 24> kPeople = {"Anna",  "Boris", "Clara", "David",  "Elena", "Felix",  "Greta",  "Henry",
                                                 "Irene", "Jonas", "Karin", "Louis",  "Marta", "Nils",   "Olga",   "Peter",
                                                 "Rosa",  "Simon", "Tanja", "Ulrich", "Vera",  "Walter", "Yvonne", "Zoltan"};

struct Fact {
  std::array<const char*, 2> statements;  // with % for the person and $ for the answer
  std::array<const char*, 2> questions;
  std::array<const char*, 8> answers;
};
constexpr std::array<Fact, 4> kFacts = {{
    {{"% lives in $.", "The home of % is in $."},
     {"Where does % live?", "In which city is the home of %?"},
     {"Berlin", "New York", "Lisbon", "Oslo", "San Marino", "Prague", "Cape Town", "Vienna"}},
    {{"% works as a $.", "% earns money as a $."},
     {"What is the job of %?", "As what does % work?"},
     {"baker", "nurse", "bus driver", "teacher", "pilot", "fire fighter", "painter", "judge"}},
    {{"% has a $.", "The pet of % is a $."},
     {"Which pet does % have?", "What animal belongs to %?"},
     {"grey cat", "dog", "white rabbit", "parrot", "hamster", "tortoise", "goldfish", "small horse"}},
    {{"% was born in $.", "The year when % was born is $."},
     {"When was % born?", "In which year was % born?"},
     {"1950", "1962", "1974", "1981", "1988", "1993", "1999", "2004"}},
}};

std::string filled(const std::string& pattern, const std::string& person, const std::string& answer) {
  std::string out;
  for (const char letter : pattern) out += letter == '%' ? person : letter == '$' ? answer : std::string(1, letter);
  return out;
}

}  // namespace

std::vector<Question> synthetic_facts(int64_t count, uint64_t seed, DataPart part) {
  constexpr int64_t people = std::ssize(kPeople);
  std::vector<Question> out;
  for (int64_t i = 0; i < count; ++i) {
    Draws draws({3 * seed + static_cast<uint64_t>(part), static_cast<uint64_t>(i)});
    struct Statement {
      int64_t person, fact, answer;
    };
    std::vector<Statement> statements;
    const int64_t start = draws.below(people), step = draws.coin() ? 1 : 3;
    for (int64_t p = 0; p < 2 + draws.below(2); ++p) {
      const int64_t person = (start + p * step) % people, fact = draws.below(std::ssize(kFacts));
      statements.push_back({person, fact, draws.below(8)});
      statements.push_back({person, (fact + 1 + draws.below(3)) % std::ssize(kFacts), draws.below(8)});
    }
    for (size_t k = statements.size() - 1; k > 0; --k)
      std::swap(statements[k], statements[static_cast<size_t>(draws.below(static_cast<int64_t>(k) + 1))]);
    const auto asked = static_cast<size_t>(draws.below(std::ssize(statements)));
    Question item;
    for (size_t k = 0; k < statements.size(); ++k) {
      const Statement& each = statements[k];
      const Fact& fact = kFacts[static_cast<size_t>(each.fact)];
      const std::string person = kPeople[static_cast<size_t>(each.person)], answer = fact.answers[static_cast<size_t>(each.answer)];
      const std::string pattern = fact.statements[draws.coin()];
      if (!item.context.empty()) item.context += ' ';
      if (k == asked) {
        item.question = filled(fact.questions[draws.coin()], person, "");
        item.answers = {{answer, item.context.size() + filled(pattern.substr(0, pattern.find('$')), person, "").size()}};
      }
      item.context += filled(pattern, person, answer);
    }
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace heed
