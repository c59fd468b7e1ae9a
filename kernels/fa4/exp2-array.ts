import { createScalarEngine, type ArrayFunction } from '../../src/simd/index.js';
import { exp2Coefficients, type PolynomialDegree } from './exp2.js';

const bytesPerCoefficient = 8;

/**
 * FlashAttention-4's software exp2 on arrays of fp32 bit patterns, in WebAssembly: for every input
 * what `exp2PolynomialBits` gives, ten times as fast. Each call makes an instance with memory
 * of its own; make one per thread.
 *
 * The multiply-adds are rounded to fp64 before fp32. That could matter only where the fp64 sum is a
 * midpoint of two fp32 numbers, and changes no result: evaluated for every fp32 fraction from 2^-25
 * to 1 in every degree, below 2^-25 a product is less than a quarter of an ulp of the coefficient it
 * is added to, and all 2^32 inputs have the fingerprint of an H200 in every degree.
 *
 * @param degree default 3, as the forward runs it
 * @param coefficients default FlashAttention-4's of that degree; fp32 numbers from c0 up
 */
export function createExp2PolynomialArray(
  degree: PolynomialDegree = 3,
  coefficients: readonly number[] = exp2Coefficients[degree],
): ArrayFunction {
  const engine = createScalarEngine(coefficients.length * bytesPerCoefficient);
  const address = engine.place(Float64Array.from(coefficients));
  const highest = coefficients.length - 1;
  return engine.arrayFunction((inputs, results, count) =>
    engine.kernels.exp2Polynomial(inputs, results, count, address, highest),
  );
}
