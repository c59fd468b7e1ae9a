/** e^(−2πi k / size) for k < size / 2: cosines, then sines. */
function rootsOfUnity(size: number): {
  readonly real: Float64Array;
  readonly imaginary: Float64Array;
} {
  const of = (part: (angle: number) => number) =>
    Float64Array.from({ length: size / 2 }, (_, k) => part((-2 * Math.PI * k) / size));
  return { real: of(Math.cos), imaginary: of(Math.sin) };
}

/** The place of each number when the bits of places are reversed. */
function reversedBits(size: number): Int32Array {
  const places = new Int32Array(size);
  for (let i = 1; i < size; i++) places[i] = (places[i >> 1] >> 1) | (i & 1 ? size >> 1 : 0);
  return places;
}

/** A discrete Fourier transform in place, Σ_n x_n e^(−2πi kn / size), of complex numbers. */
export type FourierTransform = (real: Float64Array, imaginary: Float64Array) => void;

/** Makes the transform of `size` numbers, a power of two (Cooley and Tukey, radix 2). */
export function fourierTransform(size: number): FourierTransform {
  const { real: cosines, imaginary: sines } = rootsOfUnity(size);
  const places = reversedBits(size);
  return (real, imaginary) => {
    for (let i = 0; i < size; i++) {
      const j = places[i];
      if (j <= i) continue;
      const x = real[i];
      const y = imaginary[i];
      real[i] = real[j];
      imaginary[i] = imaginary[j];
      real[j] = x;
      imaginary[j] = y;
    }
    for (let half = 1; half < size; half *= 2) {
      const step = size / (2 * half);
      for (let first = 0; first < size; first += 2 * half)
        for (let k = 0; k < half; k++) {
          const c = cosines[k * step];
          const s = sines[k * step];
          const low = first + k;
          const high = low + half;
          const x = real[high] * c - imaginary[high] * s;
          const y = real[high] * s + imaginary[high] * c;
          const u = real[low];
          const v = imaginary[low];
          real[high] = u - x;
          imaginary[high] = v - y;
          real[low] = u + x;
          imaginary[low] = v + y;
        }
    }
  };
}
