// One step of stochastic Frank-Wolfe for many tensors, on the host.
//
// The machine's own compiler builds this file when it is first asked for; it includes nothing of
// PyTorch, so that takes a second. A tensor is a row of a table; it has one point, or several (rows,
// filters). Of every point `measure` finds the few numbers that its vertex depends on, and `vertex`
// answers entry by entry, a block at a time, so that what one loop leaves is still near for the next.
// The formulas are those of `regions/`; sums are taken in double precision.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

constexpr int64_t BLOCK = 512;

// In the order of `KINDS` in `_fit.py`.
enum Kind : int64_t { FREE, LINF, BOX, L2, L1, USIMPLEX, PSIMPLEX, KNORM, LP, KSPARSE };

// Mirrored, field by field, by `Row` in `_table.py`.
struct Row {
  void *theta;
  const void *gradient;
  void *average;  // null without momentum
  float *step;
  int64_t kind, wide, ruled, random;  // wide: float64; ruled: lr is a share of the direction's length
  int64_t rows, size, count;          // count: K
  int64_t mid, inner;                 // where entries lie in memory, see `entry`
  uint64_t seed, number;
  double radius, low, high;
  double fresh, sign, diameter, rate;
  double length;  // of the step that was taken: an answer
};

// ---- noise, number for number that of `regions/_ties.py`

uint64_t scramble(uint64_t counter, uint64_t key) {
  uint64_t word = counter * 0x9E3779B97F4A7C15u + key;
  word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
  word = (word ^ word >> 27) * 0x94D049BB133111EBu;
  return word ^ word >> 31;
}

// One point of a tensor: its direction d, its parameters, and how ties are broken in it.
template <typename T> struct Point {
  const Row &row;
  uint64_t key;
  int64_t number;  // of this point among those of the tensor
  const T *d;
  T *theta;

  // The logical number of an entry: blocks of `mid` times `inner` lie transposed in memory.
  int64_t entry(int64_t i) const {
    const int64_t place = number * row.size + i, block = row.mid * row.inner;
    const int64_t within = place % block;
    return place - within + within % row.mid * row.inner + within / row.mid;
  }
  uint64_t noise(int64_t i) const { return scramble(entry(i), key); }
  // The rank of an entry in a tie: the highest wins.
  int64_t priority(int64_t i) const { return row.random ? int64_t(noise(i)) : -entry(i); }
  // The rank of an entry that no point has; without draws it always wins.
  int64_t rank_of_none() const {
    return row.random ? int64_t(scramble(uint64_t(-1 - number), key)) : 1;
  }
};

// What a point's vertex depends on. Its entries are `rest`, but for what the kind says.
template <typename T> struct Measured {
  double norm = 0;          // of the direction
  T one = 0, two = 0;       // L2: d times one times two; spikes: one at `chosen`
  T rest = 0;               // not a number where the direction is not finite
  int64_t chosen = -1;
  bool drawn = false;       // the direction is zero and the vertex a corner, or a corner is best
  T threshold = 0;          // K-sparse: who reaches it is taken,
  bool tied = false;        // but of those at it only
  int64_t last = 0;         // the ones with at least this priority
};

// ---- measuring

// Not a number if any entry is infinite or not a number, else zero.
template <typename T> T poison(const T *x, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i] * 0;
  return sum;
}

template <typename T> double norm_of(const T *x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += double(x[i]) * double(x[i]);
  if (std::is_same_v<T, float> || (sum > 1e-260 && sum < 1e300) || std::isnan(sum))
    return std::sqrt(sum);
  double top = 0;  // the squares of float64 numbers may underflow or overflow
  for (int64_t i = 0; i < n; ++i) top = std::max(top, double(std::abs(x[i])));
  if (top == 0 || std::isinf(top)) return top;
  sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (x[i] / top) * (x[i] / top);
  return top * std::sqrt(sum);
}

struct Winner {
  double top;
  int64_t place, priority;
};

// The entry of the largest |d|, or of the smallest d, that wins its ties.
template <bool SMALLEST, typename T> Winner winner_of(const Point<T> &p) {
  const int64_t n = p.row.size;
  const T *d = p.d;
  const auto value = [](T x) { return SMALLEST ? -x : std::abs(x); };
  T top = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : top)
  for (int64_t i = 0; i < n; ++i) top = top < value(d[i]) ? value(d[i]) : top;
  Winner best{double(top), -1, 0};
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    const int64_t end = std::min(n, begin + BLOCK);
    int found = 0;
#pragma omp simd reduction(+ : found)
    for (int64_t i = begin; i < end; ++i) found += value(d[i]) == top;
    for (int64_t i = begin; found && i < end; ++i) {
      if (value(d[i]) != top) continue;
      const int64_t priority = p.priority(i);
      if (best.place < 0 || priority > best.priority) best = {best.top, i, priority};
    }
  }
  return best;
}

template <typename T> void measure_spike(const Point<T> &p, Measured<T> &m) {
  const bool simplex = p.row.kind == USIMPLEX || p.row.kind == PSIMPLEX;
  const Winner best = simplex ? winner_of<true>(p) : winner_of<false>(p);
  m.chosen = best.place;
  m.one = p.row.radius;
  if (!simplex) {
    const T d = best.place < 0 ? T(0) : p.d[best.place];
    const T draw = p.row.random ? (best.priority & 1 ? 1 : -1) : 0;
    m.one *= d > 0 ? T(-1) : d < 0 ? T(1) : -draw;
  }
  if (p.row.kind == USIMPLEX && !(best.top > 0)) {  // the origin may be better, or as good
    if (best.top < 0 || best.priority <= p.rank_of_none()) m.chosen = -1;
  }
  if (p.row.kind == KNORM) {  // a corner of the cube may be better
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < p.row.size; ++i) total += std::abs(double(p.d[i]));
    const double spike = double(p.row.count) * best.top;
    m.drawn = p.row.count == 1 ? total >= spike : total > spike;
    if (total == spike && p.row.count > 1 && p.row.count < p.row.size)
      m.drawn = (p.rank_of_none() & 2) != 0;  // a coin decides between equals
  }
}

// The bits of |x|: they are ordered as the values are.
template <typename T> auto bits_of(T x) {
  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> bits;
  std::memcpy(&bits, &x, sizeof x);
  return bits & ~(decltype(bits)(1) << (8 * sizeof x - 1));
}

// How many |x| reach the value of these bits.
template <typename T, typename Bits> int64_t reaching(const T *x, int64_t n, Bits least) {
  int64_t sum = 0;
  for (int64_t begin = 0; begin < n; begin += int64_t(1) << 30) {
    const int64_t end = std::min(n, begin + (int64_t(1) << 30));
    uint32_t part = 0;  // twice as fast as a wide one
#pragma omp simd reduction(+ : part)
    for (int64_t i = begin; i < end; ++i) part += bits_of(x[i]) >= least;
    sum += part;
  }
  return sum;
}

// Bits between which the k-th largest |x| lies, judged by a sample; nearly always it does.
template <typename T> auto bracket(const T *x, int64_t n, int64_t k) {
  using Bits = decltype(bits_of(T()));
  const int64_t stride = n / 512 | 1, most = (n - 1) / stride;
  std::vector<Bits> sample;
  for (int64_t i = 0; i < n; i += stride) sample.push_back(bits_of(x[i]));
  const double share = double(k) / double(n), place = share * double(most + 1);
  const double margin = 3 * std::sqrt(place * (1 - share)) + 3;
  const auto nth = [&](double at) {  // from the top
    const auto here = sample.begin() + std::clamp<int64_t>(int64_t(at), 0, most);
    std::nth_element(sample.begin(), here, sample.end(), std::greater<Bits>());
    return *here;
  };
  const Bits low = place + margin > double(most) ? 0 : nth(place + margin);
  const Bits high = place < margin ? ~Bits(0) : nth(place - margin);
  return std::pair<Bits, Bits>(low, high);
}

// A value that exactly K of the |d| reach; or the K-th largest, where others are equal to it.
// A few passes that count are faster than a selection, which is for ever surprised by its data.
template <typename T> void measure_largest(const Point<T> &p, Measured<T> &m) {
  using Bits = decltype(bits_of(T()));
  const int64_t n = p.row.size, k = p.row.count;
  auto [least, beyond] = bracket(p.d, n, k);  // at least k reach the one, fewer the other
  beyond += beyond != ~Bits(0);
  int64_t many = reaching(p.d, n, least), few = reaching(p.d, n, beyond);
  if (many < k) many = reaching(p.d, n, least = 0);
  if (few >= k) few = reaching(p.d, n, beyond = ~Bits(0));
  for (int pass = 0; many != k && beyond - least > 1; ++pass) {
    const double share = pass % 3 < 2 ? (double(many - k) + 0.5) / double(many - few) : 0.5;
    const Bits reach = Bits(double(beyond - least) * share);
    const Bits next = least + std::clamp<Bits>(reach, 1, beyond - least - 1);
    const int64_t found = reaching(p.d, n, next);
    (found >= k ? least : beyond) = next;
    (found >= k ? many : few) = found;
  }
  std::memcpy(&m.threshold, &least, sizeof least);
  m.tied = many != k;
  if (!m.tied) return;
  std::vector<int64_t> priorities;
  for (int64_t i = 0; i < n; ++i)
    if (bits_of(p.d[i]) == least) priorities.push_back(p.priority(i));
  const auto last = priorities.begin() + (k - few - 1);
  std::nth_element(priorities.begin(), last, priorities.end(), std::greater<int64_t>());
  m.last = *last;
}

template <typename T> void measure(const Point<T> &p, Measured<T> &m) {
  const Row &row = p.row;
  if (row.ruled || row.kind == L2) m.norm = norm_of(p.d, row.size);
  if (row.kind == L2) {
    m.drawn = m.norm == 0;
    // One of the factors is a power of two, lest 1 / norm overflow.
    int exponent = 0;
    if (m.norm > 0 && std::isfinite(m.norm)) std::frexp(m.norm, &exponent);
    exponent = std::clamp(-exponent, std::numeric_limits<T>::min_exponent,
                          std::numeric_limits<T>::max_exponent - 1);
    m.one = std::ldexp(T(1), exponent);
    m.two = T(-row.radius / (m.norm * std::ldexp(1.0, exponent)));
    if (m.drawn) m.one = row.random ? T(row.radius / std::sqrt(double(row.size))) : T(0);
  } else if (row.kind == KSPARSE) {
    measure_largest(p, m);
  } else if (row.kind != LINF && row.kind != BOX) {
    measure_spike(p, m);
  }
  // Of a direction that is not finite, only L2 and the entrywise kinds leave that to its entries.
  if (row.kind >= L1) m.rest = row.ruled && std::isfinite(m.norm) ? T(0) : poison(p.d, row.size);
}

// ---- answering: the entries i to i + n of a vertex

template <typename T> void signs(const Point<T> &p, T scale, int64_t i, int64_t n, T *v) {
  const T *d = p.d + i;
  int zeros = 0;
#pragma omp simd reduction(+ : zeros)
  for (int64_t j = 0; j < n; ++j) {
    v[j] = (d[j] > 0 ? scale : d[j] < 0 ? -scale : T(0)) + d[j] * 0;
    zeros += d[j] == 0;
  }
  if (!zeros || !p.row.random) return;
  const uint64_t first = p.number * p.row.size + i;
  if (p.row.mid * p.row.inner == 1) {  // drawn for all: quicker than to ask who is zero
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      const T draw = scramble(first + j, p.key) & 1 ? scale : -scale;
      v[j] = d[j] == 0 ? draw : v[j];
    }
  } else {
    for (int64_t j = 0; j < n; ++j)
      if (d[j] == 0) v[j] = p.noise(i + j) & 1 ? scale : -scale;
  }
}

template <typename T>
void largest(const Point<T> &p, const Measured<T> &m, int64_t i, int64_t n, T *v) {
  const T *d = p.d + i, t = T(p.row.radius);
  int special = 0;
#pragma omp simd reduction(+ : special)
  for (int64_t j = 0; j < n; ++j) {
    const T size = std::abs(d[j]);
    v[j] = (size >= m.threshold ? (d[j] > 0 ? -t : t) : T(0)) + m.rest;
    special += size == m.threshold;
  }
  if (!special || !(m.tied || m.threshold == 0)) return;
  for (int64_t j = 0; j < n; ++j) {
    if (std::abs(d[j]) != m.threshold) continue;
    if (m.tied && p.priority(i + j) < m.last) v[j] = m.rest;
    else if (d[j] == 0) v[j] = (p.row.random ? (p.noise(i + j) & 1 ? -t : t) : T(0)) + m.rest;
  }
}

template <typename T>
void vertex(const Point<T> &p, const Measured<T> &m, int64_t i, int64_t n, T *v) {
  const Row &row = p.row;
  const T *d = p.d + i;
  switch (row.kind) {
  case LINF:
    return signs(p, T(-row.radius), i, n, v);
  case BOX:
    signs(p, T(1), i, n, v);
    for (int64_t j = 0; j < n; ++j) v[j] = (v[j] < 0 ? T(row.high) : T(row.low)) + v[j] * 0;
    return;
  case L2:
    for (int64_t j = 0; j < n; ++j)
      v[j] = m.drawn ? (row.random && !(p.noise(i + j) & 1) ? -m.one : m.one)
                     : d[j] * m.one * m.two;
    return;
  case KSPARSE:
    return largest(p, m, i, n, v);
  case KNORM:
    if (m.drawn) return signs(p, T(-row.radius / row.count), i, n, v);
    [[fallthrough]];
  default:
    std::fill(v, v + n, m.rest);
    if (m.chosen >= i && m.chosen < i + n) v[m.chosen - i] = m.one + m.rest;
  }
}

// ---- moving

template <typename T> double squared_gap(const Point<T> &p, const Measured<T> &m) {
  T v[BLOCK];
  double sum = 0;
  for (int64_t i = 0; i < p.row.size; i += BLOCK) {
    const int64_t n = std::min(BLOCK, p.row.size - i);
    vertex(p, m, i, n, v);
    const T *x = p.theta + i;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) sum += double(v[j] - x[j]) * double(v[j] - x[j]);
  }
  return sum;
}

template <typename T> void approach(const Point<T> &p, const Measured<T> &m, T length) {
  T v[BLOCK];
  for (int64_t i = 0; i < p.row.size; i += BLOCK) {
    const int64_t n = std::min(BLOCK, p.row.size - i);
    vertex(p, m, i, n, v);
    T *x = p.theta + i;
    if (length < T(0.5))  // from the nearer end, as torch.lerp
      for (int64_t j = 0; j < n; ++j) x[j] += length * (v[j] - x[j]);
    else
      for (int64_t j = 0; j < n; ++j) x[j] = v[j] - (v[j] - x[j]) * (1 - length);
  }
}

// The tensor's direction: its average, brought up to date, or its gradient.
template <typename T> const T *direction(const Row &row, std::vector<T> &turned) {
  const int64_t n = row.rows * row.size;
  const T *g = static_cast<const T *>(row.gradient), sign = T(row.sign), fresh = T(row.fresh);
  if (T *m = static_cast<T *>(row.average)) {
    if (fresh < T(0.5))
      for (int64_t i = 0; i < n; ++i) m[i] += fresh * (sign * g[i] - m[i]);
    else
      for (int64_t i = 0; i < n; ++i) m[i] = sign * g[i] - (sign * g[i] - m[i]) * (1 - fresh);
    return m;
  }
  if (row.sign > 0) return g;
  turned.resize(n);
  for (int64_t i = 0; i < n; ++i) turned[i] = -g[i];
  return turned.data();
}

template <typename T> void move(Row &row) {
  std::vector<T> turned;
  T *theta = static_cast<T *>(row.theta);
  const T *d = direction(row, turned);
  *row.step += 1;
  if (row.kind == FREE) {
    const T rate = T(row.rate);
    for (int64_t i = 0; i < row.rows * row.size; ++i) theta[i] -= rate * d[i];
    return;
  }
  const uint64_t key =
      scramble(uint64_t(*row.step), scramble(row.number, scramble(row.seed, 0)));
  std::vector<Measured<T>> found(row.rows);
  double squares = 0, gap = 0;
  const auto point = [&](int64_t r) {
    return Point<T>{row, key, r, d + r * row.size, theta + r * row.size};
  };
  for (int64_t r = 0; r < row.rows; ++r) {
    measure(point(r), found[r]);
    if (!row.ruled) continue;
    squares += found[r].norm * found[r].norm;
    gap += squared_gap(point(r), found[r]);
  }
  if (row.ruled) {
    const double reach = row.rate * (row.rows == 1 ? found[0].norm : std::sqrt(squares));
    row.length = std::sqrt(gap) > reach ? reach / std::sqrt(gap) : 1.0;
  } else {
    row.length = row.diameter > 0 ? std::min(row.rate / row.diameter, 1.0) : 0.0;
  }
  for (int64_t r = 0; r < row.rows; ++r) approach(point(r), found[r], T(row.length));
}

}  // namespace

extern "C" int64_t condgrad_row_bytes() { return sizeof(Row); }

// Moves every tensor; returns how many have taken a number of steps that `every` divides.
extern "C" int64_t condgrad_step(Row *rows, int64_t count, int64_t every) {
  int64_t due = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i].wide) move<double>(rows[i]);
    else move<float>(rows[i]);
    due += int64_t(*rows[i].step) % every == 0;
  }
  return due;
}
