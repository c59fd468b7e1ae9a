import { describe, expect, it } from 'vitest';
import { exponentOf, powerOfTwo } from '../../src/formats/binary64.js';

describe('powerOfTwo', () => {
  it('agrees with repeated doubling and halving at every exponent', () => {
    let up = 1;
    let down = 1;
    for (let exponent = 0; exponent <= 1100; exponent++, up *= 2, down /= 2) {
      expect(powerOfTwo(exponent)).toBe(up);
      expect(powerOfTwo(-exponent)).toBe(down);
    }
  });
});

describe('exponentOf', () => {
  it('brackets |x| between two powers of two, throughout fp64', () => {
    for (let exponent = -1074; exponent <= 1023; exponent++) {
      const power = powerOfTwo(exponent);
      const last = exponent < -1022 ? power * 2 - 2 ** -1074 : power * (2 - 2 ** -52);
      expect(exponentOf(power)).toBe(exponent);
      expect(exponentOf(-last)).toBe(exponent);
    }
  });

  it('orders zero, infinities and NaN', () => {
    expect(exponentOf(-0)).toBe(-Infinity);
    expect(exponentOf(-Infinity)).toBe(Infinity);
    expect(exponentOf(NaN)).toBe(NaN);
  });
});
