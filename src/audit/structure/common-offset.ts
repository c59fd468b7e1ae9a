import { type FormatName, formats } from '../../formats/index.js';
import { lazily } from '../../reuse.js';

/** Places within an octave per ulp at its lower end, as a power of two. */
const placesPerUlp = 3;

/** An octave is divided into no more places than this, as a power of two. */
const mostPlaces = 13;

/**
 * The roundings of weights that kernels share which take all exponents relative to one number: a weight at
 * place f of its octave (its logarithm's fraction) is rounded to a format after it was multiplied by 2^θ,
 * with one θ for all weights. A projection of these errors is a function of θ, the correlation of Σ c over
 * the weights at each place with the rounding error at each place.
 */
export class CommonOffset {
  /** Places of an octave. */
  readonly places: number;
  readonly #transform;
  /** The relative rounding error of a number at each place of its octave. */
  readonly errors: Float64Array;
  readonly #kernelReal: Float64Array;
  readonly #kernelImaginary: Float64Array;
  readonly #real: Float64Array;
  readonly #imaginary: Float64Array;

  /** Makes one for formats of at most twelve significant bits; for finer ones the places tell nothing. */
  constructor(weightFormat: FormatName) {
    const { precision } = formats[weightFormat];
    this.places = 2 ** Math.min(precision + placesPerUlp, mostPlaces);
    this.#transform = transformOf(this.places);
    const ulps = 2 ** (precision - 1);
    this.errors = Float64Array.from({ length: this.places }, (_, place) => {
      const significand = ulps * 2 ** ((place + 0.5) / this.places);
      return (Math.round(significand) - significand) / significand;
    });
    this.#kernelReal = this.errors.slice();
    this.#kernelImaginary = new Float64Array(this.places);
    this.#transform(this.#kernelReal, this.#kernelImaginary);
    this.#real = new Float64Array(this.places);
    this.#imaginary = new Float64Array(this.places);
  }

  /**
   * The largest |Σ c·(relative rounding error)| that any θ makes, for each of two sets of weights given as
   * Σ c by place.
   */
  largest(first: Float64Array, second: Float64Array): readonly [number, number] {
    if (!first.some((x) => x !== 0) && !second.some((x) => x !== 0)) return [0, 0];
    const { places } = this;
    const [real, imaginary] = [this.#real, this.#imaginary];
    const [kernelReal, kernelImaginary] = [this.#kernelReal, this.#kernelImaginary];
    for (let place = 0; place < places; place++) {
      const reversed = (places - place) % places;
      real[reversed] = first[place];
      imaginary[reversed] = second[place];
    }
    this.#transform(real, imaginary);
    for (let k = 0; k < places; k++) {
      const x = real[k];
      const y = imaginary[k];
      const c = kernelReal[k];
      const s = kernelImaginary[k];
      // Conjugated: the inverse is a transform of the conjugate.
      real[k] = x * c - y * s;
      imaginary[k] = -(x * s + y * c);
    }
    this.#transform(real, imaginary);
    return [largestOf(real) / places, largestOf(imaginary) / places];
  }
}

/** The largest magnitude. */
function largestOf(values: Float64Array): number {
  let largest = 0;
  for (const x of values) largest = Math.max(largest, Math.abs(x));
  return largest;
}

/** Places of an ulp that outputs are told apart by. */
export const outputPlaces = 64;

/** The rounding error in half ulps of an output in the middle of each place. */
const roundingByPlace = Float64Array.from({ length: outputPlaces }, (_, place) => {
  const at = (place + 0.5) / outputPlaces;
  return at < 0.5 ? -2 * at : 2 - 2 * at;
});

/**
 * The largest |Σ c·(rounding error in half ulps)| of outputs that are all moved by one part of their ulp
 * before they are rounded, given Σ c by their place in it.
 */
export function largestShiftedRounding(byPlace: Float64Array): number {
  let largest = 0;
  for (let shift = 0; shift < outputPlaces; shift++) {
    let sum = 0;
    for (let place = 0; place < outputPlaces; place++)
      sum += byPlace[place] * roundingByPlace[(place + shift) % outputPlaces];
    largest = Math.max(largest, Math.abs(sum));
  }
  return largest;
}

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
type FourierTransform = (real: Float64Array, imaginary: Float64Array) => void;

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

/** The transforms by the logarithm of their size, with their tables. */
const transforms = Array.from({ length: mostPlaces + 1 }, (_, bits) =>
  lazily(() => fourierTransform(2 ** bits)),
);

/** The transform of so many numbers, at most 2^mostPlaces. */
function transformOf(size: number): FourierTransform {
  return transforms[Math.log2(size)]();
}
