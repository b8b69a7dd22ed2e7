// The tail of the normal distribution: Phi(-a) = e^(-a^2/2) u P(u) with u = 1/(1 + slope a), for 0 <= a <= 13, relative error 1e-7. P was
// fitted for heed by weighted least squares towards the smallest largest error.
#pragma once

namespace heed::normal_tail {

inline constexpr float slope = 0.2575f;
// P(u) = p0 + p1 u + ... + p6 u^6
inline constexpr float p6 = -0.0782504156f, p5 = 0.257374853f, p4 = -0.144863516f, p3 = 0.192707956f, p2 = 0.0625859499f, p1 = 0.108067721f,
                       p0 = 0.102377392f;
inline constexpr float density = 0.398942280f;             // at 0: 1 / sqrt(2 pi)
inline constexpr float minus_half_log2_e = -0.721347520f;  // e^(-x/2) = 2^(x minus_half_log2_e)

}  // namespace heed::normal_tail
