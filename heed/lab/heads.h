// The head experiment (Cordonnier et al. 2020): how the centres of heads with Gaussian positions move during training, as an HTML page with
// an animation, as drawings and as numbers.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "heed/io/drawing.h"
#include "heed/train/head_record.h"
#include "heed/train/report_run.h"

namespace heed::lab {

struct HeadsRun {
  RunRecord run = {};
  std::vector<HeadFrame> frames = {};
  std::string figure = {};  // metric of the curve: "accuracy", or "loss" if the run has no accuracy

  const HeadFrame& last() const { return frames.back(); }
  std::optional<double> value(const std::string& part, int64_t epoch) const;  // "validation" or "train"
};
// A run without heads.jsonl is a FileError.
HeadsRun read_heads_run(const Path& run);

// Means over the heads of a layer, in tokens: distance of the centre from the query, and standard deviation of the weights
// (det(covariance)^(1/4)). Heads that are no Gaussian are left out of the second.
struct LayerMeans {
  double distance = 0, deviation = 0;
};
LayerMeans means_of(const GaussianLayer& layer);

// An alarm of the last frame, and the epoch since which it has been raised without interruption.
struct LastingAlarm {
  HeadAlarm alarm;
  int64_t since = 0;
};
std::vector<LastingAlarm> lasting_alarms(const std::vector<HeadFrame>& frames);
std::string alarm_name(HeadAlarm::Kind kind);  // "looks everywhere", ...

// All layers side by side after the first `to` frames. curve: with the metric up to there below them
Drawing heads_drawing(const HeadsRun& run, size_t to, bool curve);
std::string heads_svg(const Drawing& drawing);
std::string heads_film(const HeadsRun& run);  // animated PNG
std::string heads_page(const HeadsRun& run);
Json heads_json(const HeadsRun& run);
void print_heads(std::ostream& out, const HeadsRun& run);

// Writes index.html, heads.json, start.svg, end.svg, end.png and film.png atomically. A folder with other files is refused.
void check_heads_folder(const Path& folder);
void write_heads(const Path& folder, const HeadsRun& run);

}  // namespace heed::lab
