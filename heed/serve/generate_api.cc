#include "heed/serve/generate_api.h"

#include <ctime>
#include <limits>
#include <random>

namespace heed::serve {
namespace {

std::string new_id(const std::string& prefix) {
  static constexpr char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  static thread_local std::mt19937_64 random{std::random_device{}()};
  std::string out = prefix;
  for (int i = 0; i < 24; ++i) out += letters[random() % (sizeof letters - 1)];
  return out;
}

using AnySeed = std::numeric_limits<int64_t>;

double number_or(const JsonReader& body, const char* key, double fallback, double least, double most) {
  return body.has(key) ? body[key].number(least, most) : fallback;
}

std::vector<std::string> stop_texts_in(const JsonReader& body) {
  std::vector<std::string> out;
  if (!body.has("stop")) return out;
  if (body["stop"].json().is_string())
    out = {body.text("stop")};
  else
    for (const JsonReader& each : body["stop"].list()) out.push_back(each.text());
  require(out.size() <= 4, 400, "body: stop: found ", out.size(), " texts, expected at most 4");
  std::erase(out, "");
  return out;
}

// The answer to one HTTP request, for all its texts. The model's thread adds their tokens. end() may also be called by the thread that
// submits them, for those that are refused.
class TextAnswer : public std::enable_shared_from_this<TextAnswer> {
 public:
  TextAnswer(const Call& call, std::string model, AnswerFormat format, bool stream, bool usage)
      : call_(call), model_(std::move(model)), format_(std::move(format)), stream_(stream), usage_(usage), id_(new_id(format_.prefix)) {}

  void expect(size_t texts, int64_t prompt_tokens) {
    choices_.resize(choices_.size() + texts);
    prompt_tokens_ += prompt_tokens;
    ++requests_;
  }

  void add(int64_t index, const GeneratedToken& token, bool keep) {
    ChoiceText& choice = choices_[static_cast<size_t>(index)];
    const bool first = choice.text.empty() && !started_.contains(index);
    started_.insert(index);
    ++generated_;
    choice.text += token.text;
    if (!token.finish.empty()) choice.finish = token.finish;
    if (keep && !stream_) choice.tokens.push_back(token);
    if (!stream_ || (token.text.empty() && token.finish.empty() && !first && !keep)) return;
    Json out = head(format_.chunk_object);
    out["choices"] = Json::array({format_.chunk(index, token, first)});
    if (usage_) out["usage"] = nullptr;
    begin_stream();
    call_.exchange->write(sse_event(dump(out)));
  }

  // The client has disconnected, or another text has failed and with it the answer.
  bool useless() {
    const std::lock_guard lock(mutex_);
    return failed_ || call_.exchange->cancelled();
  }

  void end(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      if (error && !failed_) failed_ = error;
      if (--requests_ > 0) return;
    }
    stream_ ? end_stream() : end_whole();
  }

 private:
  Json head(const std::string& object) const { return {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_}}; }
  Json usage() const {
    return {{"prompt_tokens", prompt_tokens_}, {"completion_tokens", generated_}, {"total_tokens", prompt_tokens_ + generated_}};
  }

  // With the first event, so that what fails before has an answer with the right status.
  void begin_stream() {
    if (!begun_) call_.begin_events();
    begun_ = true;
  }

  void end_stream() {
    if (failed_ && !begun_) return call_.fail(failed_);
    begin_stream();
    if (failed_) {
      call_.exchange->write(sse_event(error_response_of(failed_).body));
    } else if (usage_) {
      Json out = head(format_.chunk_object);
      out["choices"] = Json::array();
      out["usage"] = usage();
      call_.exchange->write(sse_event(dump(out)));
    }
    call_.exchange->write(sse_event("[DONE]"));
    call_.exchange->end();
  }

  void end_whole() {
    if (failed_) return call_.fail(failed_);
    call_.reply_later([self = shared_from_this()] {
      Json out = self->head(self->format_.object);
      out["choices"] = Json::array();
      for (size_t i = 0; i < self->choices_.size(); ++i)
        out["choices"].push_back(self->format_.choice(static_cast<int64_t>(i), self->choices_[i]));
      out["usage"] = self->usage();
      return out;
    });
  }

  static Response error_response_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      return error_response(known);
    }
  }

  const Call call_;
  const std::string model_;
  const AnswerFormat format_;
  const bool stream_, usage_;
  const std::string id_;
  const int64_t created_ = std::time(nullptr);
  std::vector<ChoiceText> choices_;
  std::set<int64_t> started_;
  int64_t prompt_tokens_ = 0, generated_ = 0;
  bool begun_ = false;
  std::mutex mutex_;  // of what end() changes
  int64_t requests_ = 0;
  std::exception_ptr failed_;
};

void check_prompt(const ModelHost& host, const std::vector<int64_t>& prompt) {
  const ModelInfo& info = host.info();
  require(!prompt.empty(), 400, "prompt: found no tokens, expected one or more");
  require(std::ssize(prompt) < info.max_tokens, 400, "prompt: found ", prompt.size(), " tokens, expected less than ", info.max_tokens,
          ", the positions of ", info.id);
  for (const int64_t id : prompt)
    require(id >= 0 && id < info.vocabulary, 400, "prompt: found the token ", id, ", expected 0 to ", info.vocabulary - 1);
}

}  // namespace

std::vector<int64_t> ids_in(const Encoding& encoding) { return {encoding.ids.begin(), encoding.ids.end()}; }

int64_t new_seed() {
  static thread_local std::random_device random;
  return static_cast<int64_t>(random());
}

GenerationRequest read_generation(const Call& call, const JsonReader& body, ModelHost& host, int64_t default_tokens) {
  const ModelInfo& info = host.info();
  require(info.task == ServedTask::generate, 422, info.id, ": ", info.architecture, " does not continue texts, expected a language model");
  GenerationRequest out{.max_seconds = call.app.options().max_seconds};
  out.options = generation_options(info.generation, (info.folder / "generation_config.json").string());
  GenerationOptions& options = out.options;
  options.beams = options.count = 1;
  options.max_length = 0;
  options.min_length = options.min_new_tokens = 0;
  const int64_t limit = call.app.options().max_tokens;
  const char* key = body.has("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  options.max_new_tokens = std::min(limit, body.has(key) ? body[key].whole(1) : default_tokens > 0 ? default_tokens : limit);
  const double temperature = number_or(body, "temperature", 1, 0, 2);
  constexpr double least_temperature = 1e-5;  // below, scores divided by it may be infinite: the most likely token is the limit
  options.sample = temperature >= least_temperature;
  options.sampling = {.temperature = options.sample ? static_cast<float>(temperature) : 1.0f,
                      .top_k = body.has("top_k") ? body["top_k"].whole(0) : 0,
                      .top_p = static_cast<float>(number_or(body, "top_p", 1, 0, 1)),
                      .min_p = static_cast<float>(number_or(body, "min_p", 0, 0, 1)),
                      .seed = static_cast<uint64_t>(body.has("seed") ? body["seed"].whole(AnySeed::min(), AnySeed::max()) : new_seed())};
  options.repetition_penalty = static_cast<float>(number_or(body, "repetition_penalty", 1, 0.1, 10));
  out.choices = body.has("n") ? body["n"].whole(1, 16) : 1;
  out.stop = stop_texts_in(body);
  return out;
}

void answer_texts(const Call& call, const JsonReader& body, const std::shared_ptr<ModelHost>& host, const GenerationRequest& options,
                  const std::vector<std::vector<int64_t>>& prompts, AnswerFormat format) {
  const bool stream = body.flag_or("stream", false),
             usage = body.has("stream_options") && body["stream_options"].flag_or("include_usage", false);
  for (const std::vector<int64_t>& prompt : prompts) check_prompt(*host, prompt);
  const auto answer = std::make_shared<TextAnswer>(call, host->info().id, std::move(format), stream, usage);
  for (const std::vector<int64_t>& prompt : prompts) answer->expect(static_cast<size_t>(options.choices), std::ssize(prompt));
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto request = std::make_shared<GenerationRequest>(options);
    request->prompt = prompts[i];
    if (!host->info().maps) request->prompt_piece = std::ssize(prompts[i]);  // linear attention has no cache of keys
    request->options.sampling.seed += i;
    request->options.max_new_tokens = std::min(options.options.max_new_tokens, host->info().max_tokens - std::ssize(prompts[i]));
    const int64_t first = static_cast<int64_t>(i) * options.choices;
    const bool keep = options.top_logprobs >= 0;
    request->on_token = [answer, first, keep](const GeneratedToken& token) { answer->add(first + token.choice, token, keep); };
    request->on_end = [answer](std::exception_ptr error) { answer->end(error); };
    request->cancelled = [answer] { return answer->useless(); };
    try {
      host->submit(request);
    } catch (...) {
      request->on_end(std::current_exception());
    }
  }
}

}  // namespace heed::serve
