// Numbers between 0 and 1 that look random and are not, and the softmax.
export const wave = (...seeds) => {
  let x = 0.37;
  for (const seed of seeds) x = (Math.sin(x * 127.1 + seed * 311.7) * 43758.5453) % 1;
  return Math.abs(x);
};
export const softmax = row => {
  const most = Math.max(...row),
    powers = row.map(value => Math.exp(value - most)),
    sum = powers.reduce((a, b) => a + b, 0);
  return powers.map(value => value / sum);
};
