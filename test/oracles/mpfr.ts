import { init, mpfr_rnd_t, type GMPFunctions, type mpfr_ptr } from 'gmp-wasm';

const { MPFR_RNDN: nearest, MPFR_RNDU: up } = mpfr_rnd_t;

/** A number of MPFR's; good until its arena is released. */
export type Real = mpfr_ptr;

/**
 * MPFR numbers of one precision, freed together. Operations round to nearest at that precision and
 * return a new number.
 */
export class Arena {
  readonly #gmp: GMPFunctions;
  readonly #numbers: Real[] = [];
  readonly precision: number;

  constructor(gmp: GMPFunctions, precision: number) {
    this.#gmp = gmp;
    this.precision = precision;
  }

  #make(compute: (target: Real) => unknown): Real {
    const number = this.#gmp.mpfr_t();
    this.#gmp.mpfr_init2(number, this.precision);
    this.#numbers.push(number);
    compute(number);
    return number;
  }

  /** An fp64 value, exactly. */
  of(x: number): Real {
    return this.#make((r) => this.#gmp.mpfr_set_d(r, x, nearest));
  }

  /** integer · 2^exponent; exact when the integer has at most `precision` bits. */
  scaled(integer: bigint, exponent: number): Real {
    return this.#make((r) => {
      this.#gmp.mpfr_set_string(r, integer.toString(16), 16, nearest);
      this.#gmp.mpfr_mul_2si(r, r, exponent, nearest);
    });
  }

  add(a: Real, b: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_add(r, a, b, nearest));
  }

  subtract(a: Real, b: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_sub(r, a, b, nearest));
  }

  multiply(a: Real, b: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_mul(r, a, b, nearest));
  }

  divide(a: Real, b: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_div(r, a, b, nearest));
  }

  absolute(a: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_abs(r, a, nearest));
  }

  squareRoot(a: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_sqrt(r, a, nearest));
  }

  exp(a: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_exp(r, a, nearest));
  }

  exp2(a: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_exp2(r, a, nearest));
  }

  log(a: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_log(r, a, nearest));
  }

  cos(a: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_cos(r, a, nearest));
  }

  sin(a: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_sin(r, a, nearest));
  }

  tanh(a: Real): Real {
    return this.#make((r) => this.#gmp.mpfr_tanh(r, a, nearest));
  }

  ln2(): Real {
    return this.#make((r) => this.#gmp.mpfr_const_log2(r, nearest));
  }

  /** a · 2^exponent. */
  scale(a: Real, exponent: number): Real {
    return this.#make((r) => this.#gmp.mpfr_mul_2si(r, a, exponent, nearest));
  }

  isLess(a: Real, b: Real): boolean {
    return this.#gmp.mpfr_less_p(a, b) !== 0;
  }

  /** The nearest fp64 value. */
  toNumber(a: Real): number {
    return this.#gmp.mpfr_get_d(a, nearest);
  }

  /** |a − x − low| rounded up to fp64; ∞ when x is not finite. */
  distance(a: Real, x: number, low = 0): number {
    if (!Number.isFinite(x)) return Infinity;
    const rest = this.subtract(this.subtract(a, this.of(x)), this.of(low));
    return this.#gmp.mpfr_get_d(this.absolute(rest), up);
  }

  /** Frees every number made here. */
  release(): void {
    for (const number of this.#numbers.splice(0)) {
      this.#gmp.mpfr_clear(number);
      this.#gmp.mpfr_t_free(number);
    }
  }
}

/** MPFR, in WebAssembly. */
export interface Mpfr {
  /** Runs `compute` with numbers of the given precision, freed when it is done. */
  readonly withPrecision: <T>(bits: number, compute: (arena: Arena) => T) => T;
  /** Bytes of WebAssembly memory, which grows when numbers are not freed. */
  readonly heapBytes: () => number;
}

/** MPFR in a memory of its own: its cached constants and its heap are shared with no other caller. */
export async function loadMpfr(): Promise<Mpfr> {
  const { binding } = await init();
  await binding.reset();
  return {
    withPrecision: (bits, compute) => {
      const arena = new Arena(binding, Math.ceil(bits));
      try {
        return compute(arena);
      } finally {
        arena.release();
      }
    },
    heapBytes: () => binding.mem.length,
  };
}
