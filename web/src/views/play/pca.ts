// Principal components by power iteration on the Gram matrix: few vectors of many numbers.
const dot = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i], 0);

// -> the first two coordinates of each vector, and their shares of the variance
export function principal(vectors: number[][]): { points: [number, number][]; shares: [number, number] } {
  const count = vectors.length,
    width = vectors[0]?.length ?? 0;
  if (count === 0) return { points: [], shares: [0, 0] };
  const mean = Array.from({ length: width }, (_, d) => vectors.reduce((sum, vector) => sum + vector[d], 0) / count);
  const centred = vectors.map(vector => vector.map((value, d) => value - mean[d]));
  let gram = centred.map(a => centred.map(b => dot(a, b)));
  const total = gram.reduce((sum, row, i) => sum + row[i], 0) || 1;
  const axes: number[][] = [],
    shares: number[] = [];
  for (let axis = 0; axis < 2; axis++) {
    let vector = Array.from({ length: count }, (_, i) => Math.cos(1 + i * (axis + 1))); // any start that is the same every time
    let value = 0;
    for (let round = 0; round < 200; round++) {
      const next = gram.map(row => dot(row, vector));
      value = Math.sqrt(dot(next, next));
      if (value < 1e-12) break;
      vector = next.map(each => each / value);
    }
    axes.push(vector.map(each => each * Math.sqrt(Math.max(value, 0))));
    shares.push(value / total);
    gram = gram.map((row, i) => row.map((each, j) => each - value * vector[i] * vector[j]));
  }
  return { points: vectors.map((_, i) => [axes[0][i], axes[1][i]]), shares: [shares[0], shares[1]] };
}

export function cosines(vectors: number[][]): number[][] {
  const norms = vectors.map(vector => Math.sqrt(dot(vector, vector)) || 1);
  return vectors.map((a, i) => vectors.map((b, j) => dot(a, b) / norms[i] / norms[j]));
}

// Heights of labels, moved apart so that no two are closer than `gap`, in the order of the points.
export function spread(heights: number[], gap: number): number[] {
  const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]),
    out = [...heights];
  for (let round = 0; round < 20; round++)
    for (let k = 1; k < order.length; k++) {
      const [above, below] = [order[k - 1], order[k]],
        missing = gap - (out[below] - out[above]);
      if (missing > 0) ((out[above] -= missing / 2), (out[below] += missing / 2));
    }
  return out;
}
