// Views of an inspection: text, drawing, page, JSON.
#pragma once

#include "heed/io/drawing.h"
#include "heed/models/inspection.h"

namespace heed::cli {

// Attention weights of a query on the patches. map: (N, M). query: a token, or -1 for the mean over all queries
std::vector<float> patch_weights(const Inspection& inspection, std::span<const float> map, int64_t query);
int64_t default_query(const Inspection& inspection);  // the class token, or -1 if there is none

inline constexpr double kOverImage = 0.6;   // opacity of the heat map over the image
inline constexpr double kLeastLine = 0.02;  // smaller weights are not drawn as lines

// Parts of views for a terminal: the text of a token, padded to a width, where a newline becomes a visible mark and other control
// characters a question mark; the patch grid as characters, blank for `least`, dense for `most`.
std::string token_text(const std::string& token, size_t width = 0);
void add_grid(std::ostream& out, const Inspection& inspection, std::span<const float> weights, float least, float most);

std::string text_view(const Inspection& inspection, int64_t query);   // for a terminal
std::string terms_view(const Inspection& inspection, int64_t query);  // the terms of the scores of the first maps, for a terminal
Json inspection_json(const Inspection& inspection);
Drawing static_drawing(const Inspection& inspection, int64_t query);
std::string html_page(const Inspection& inspection);

}  // namespace heed::cli
