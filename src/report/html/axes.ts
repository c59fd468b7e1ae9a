const superscripts = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** A whole number as an exponent. */
function superscript(exponent: number): string {
  const digits = [...String(Math.abs(exponent))].map((digit) => superscripts[Number(digit)]);
  return `${exponent < 0 ? '⁻' : ''}${digits.join('')}`;
}

/** A power of ten as it is written: 10⁻³; 1, 10 and 100 as they are. */
export function decadeLabel(value: number): string {
  const exponent = Math.round(Math.log10(value));
  return exponent >= 0 && exponent <= 2 ? String(10 ** exponent) : `10${superscript(exponent)}`;
}

/** 2^exponent in ulps: 1/16, 1, 64, 2¹². */
export function octaveLabel(exponent: number): string {
  if (Math.abs(exponent) > 10) return `2${superscript(exponent)}`;
  return exponent < 0 ? `1/${2 ** -exponent}` : String(2 ** exponent);
}

/** Whole exponents from low to high, thinned out to at most `most`, multiples of one step. */
function exponents(low: number, high: number, most: number): number[] {
  const step = Math.max(1, Math.ceil((high - low + 1) / most));
  const first = Math.ceil(low / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((high - first) / step) + 1) }, (_, i) =>
    Number(first + i * step),
  );
}

/** Powers of ten within [low, high], at most `most`. */
export function decades(low: number, high: number, most = 6): number[] {
  // 10^k by its decimal: 10 ** -5 is not what 1e-5 is.
  return exponents(Math.ceil(Math.log10(low)), Math.floor(Math.log10(high)), most).map((exponent) =>
    Number(`1e${exponent}`),
  );
}

/** Whole exponents of 2 within [low, high], at most `most`. */
export function octaves(low: number, high: number, most = 7): number[] {
  return exponents(Math.ceil(low), Math.floor(high), most);
}

/** Positive numbers' range widened to whole decades, or what stands in for it where there is none. */
export function decadeDomain(values: Iterable<number>): readonly [number, number] {
  let [low, high] = [Infinity, 0];
  for (const value of values)
    if (value > 0 && value < Infinity) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (high === 0) return [0.1, 1];
  // The smallest numbers of fp64 have a logarithm, but not one decade below.
  const least = Math.max(-320, Math.floor(Math.log10(low)));
  return [
    Number(`1e${least}`),
    Number(`1e${Math.min(308, Math.max(least + 1, Math.ceil(Math.log10(high))))}`),
  ];
}
