#include "heed/serve/app.h"

#include <ctime>
#include <iostream>

#include "heed/core/interrupt.h"

namespace heed::serve {
namespace {

std::vector<std::string> parts_of(const std::string& pattern) {
  std::vector<std::string> out;
  for (size_t at = 1; at < pattern.size();) {
    const size_t end = std::min(pattern.find('/', at), pattern.size());
    out.push_back(pattern.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool matches(const std::string& pattern, const std::vector<std::string>& segments, std::map<std::string, std::string>& found) {
  const std::vector<std::string> parts = parts_of(pattern);
  if (parts.size() != segments.size()) return false;
  found.clear();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].starts_with('{'))
      found[parts[i].substr(1, parts[i].size() - 2)] = segments[i];
    else if (parts[i] != segments[i])
      return false;
  }
  return true;
}

void add_headers(Response& response, const Headers& more) { response.headers.insert(response.headers.end(), more.begin(), more.end()); }

void answer_safely(const Endpoint& endpoint, const Call& call) {
  const std::function<bool()> disconnected = [&] { return call.exchange->cancelled(); };
  const Interruptible interruptible(disconnected);
  try {
    check<StoppedError>(!disconnected(), "the client has disconnected");
    endpoint.answer(call);
  } catch (...) {
    call.fail(std::current_exception());
  }
}

}  // namespace

Endpoints all_endpoints() {
  Endpoints out;
  for (const auto& list : {server_endpoints, info_endpoints, completion_endpoints, chat_endpoints, embedding_endpoints, classify_endpoints,
                           translate_endpoints, tokenize_endpoints, term_endpoints, attend_endpoints, inspect_endpoints, run_endpoints,
                           setting_endpoints, lab_endpoints, cost_endpoints})
    for (Endpoint& each : list()) out.push_back(std::move(each));
  return out;
}

Json Call::body() const {
  const std::string type = request().header("content-type");
  require(type.empty() || type.starts_with("application/json"), 415, "Content-Type: found ", in_quotes(type, 60),
          ", expected application/json");
  Json out;
  try {
    out = parse_json("body", request().body);
  } catch (const FileError& error) {
    throw HttpError(400, error.what());
  }
  require(out.is_object(), 400, "body: expected a JSON object");
  return out;
}

std::string Call::query(const std::string& name) const {
  const auto found = request().query.find(name);
  return found == request().query.end() ? "" : found->second;
}

void Call::reply(Response response) const {
  finish_response(request(), response);
  add_headers(response, cross_origin_headers(app.guard(), request()));
  exchange->reply(std::move(response));
}

Response Call::events_head() const {
  Response out = sse_head();
  add_headers(out, cross_origin_headers(app.guard(), request()));
  return out;
}

void Call::fail(std::exception_ptr error) const {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    Response out = error_response(known);
    if (out.status == 429) ++app.metrics().rejected;
    reply(std::move(out));
  } catch (...) {
    reply(error_response(500, "an unknown error"));
  }
}

Failed Call::failed() const {
  return [call = *this](std::exception_ptr error) { call.fail(error); };
}

Cancelled Call::cancelled() const {
  return [exchange = exchange] { return exchange->cancelled(); };
}

void Call::reply_later(std::function<Json()> make) const {
  app.workers().post_always([call = *this, make = std::move(make)] {
    try {
      call.reply(make());
    } catch (...) {
      call.fail(std::current_exception());
    }
  });
}

App::App(const ServeOptions& options, std::function<int64_t()> connections)
    : options_(options),
      connections_(std::move(connections)),
      guard_{.host = options.http.host, .token = options.token, .origins = options.origins},
      endpoints_(all_endpoints()),
      workers_(4, 512),
      starts_(1, 8),
      lab_(1, 8),
      models_(options.models, metrics_),
      run_watch_([this] { return stopping(); }) {}

// Workers use models, and models post to workers, which then refuse.
App::~App() {
  workers_.stop();
  starts_.stop();
  lab_.stop();
}

Workers& App::workers_for(Where where) { return where == Where::start ? starts_ : where == Where::lab ? lab_ : workers_; }

const Endpoint* App::find(const Request& request, std::map<std::string, std::string>& path, std::string& allowed) const {
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  for (const Endpoint& each : endpoints_) {
    if (!matches(each.path, request.segments, path)) continue;
    if (each.method == method) return &each;
    allowed += (allowed.empty() ? "" : ", ") + each.method;
  }
  return nullptr;
}

void App::handle(const ExchangePtr& exchange) {
  const Request& request = exchange->request();
  Call call{*this, exchange};
  try {
    if (std::optional<Response> refusal = refused(guard_, request)) return call.reply(std::move(*refusal));
    if (request.method == "OPTIONS") return exchange->reply({.status = 204, .type = "", .headers = cross_origin_headers(guard_, request)});
    std::string allowed;
    const Endpoint* endpoint = find(request, call.path, allowed);
    if (!endpoint && !allowed.empty()) {
      Response out = error_response(405, request.method + " " + request.path + ": expected " + allowed);
      out.headers.emplace_back("Allow", allowed);
      return call.reply(std::move(out));
    }
    require(endpoint != nullptr, 404, request.path, ": there is no such path; /openapi.json lists them");
    if (endpoint->where == Where::here) return answer_safely(*endpoint, call);
    require(workers_for(endpoint->where).post([endpoint, call] { answer_safely(*endpoint, call); }), 429,
            "too many requests are waiting; try again later");
  } catch (...) {
    call.fail(std::current_exception());
  }
}

std::string App::route_of(const Request& request) const {
  std::map<std::string, std::string> ignored;
  if (request.path.starts_with('/'))  // else it could not be read
    for (const Endpoint& each : endpoints_)
      if (matches(each.path, parts_of(request.path), ignored)) return each.path;
  return "other";
}

void App::observe(const Served& served) {
  metrics_.request(route_of(served.request), served.status, served.seconds);
  if (!options_.log) return;
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
  const Json line{{"time", date},
                  {"peer", served.request.peer},
                  {"method", served.request.method},
                  {"path", served.request.path},
                  {"status", served.status},
                  {"bytes", served.bytes},
                  {"milliseconds", std::round(served.seconds * 1e5) / 100},
                  {"complete", served.complete}};
  std::cerr << dump(line) + "\n";
}

}  // namespace heed::serve
