import type { RegisterWidth } from './instruction.js';

/** Bits of a type of PTX: of its only element, or of an element of `x2` and `x4`. */
const elementBits: Readonly<Record<string, number>> = {
  pred: 1,
  f16: 16,
  bf16: 16,
  tf32: 32,
  e4m3: 8,
  e5m2: 8,
  e2m3: 8,
  e3m2: 8,
  e2m1: 4,
  ue8m0: 8,
};

const type =
  /^(?:([busf])(8|16|32|64|128)|pred|b?f16|tf32|e4m3|e5m2|e2m3|e3m2|e2m1|ue8m0)(x2|x4)?$/;

/** The register of a type of PTX, `f32` or `bf16x2`; null for a modifier that is no type. */
export function registerOfType(name: string): RegisterWidth | null {
  const match = type.exec(name);
  if (match === null) return null;
  if (name === 'pred') return 'pred';
  const count = match[3] === undefined ? 1 : Number(match[3].slice(1));
  const single = match[3] === undefined ? name : name.slice(0, -match[3].length);
  const bits = count * (match[2] === undefined ? elementBits[single] : Number(match[2]));
  return bits <= 16 ? 16 : (bits as RegisterWidth);
}

/** Whether a type holds several elements, which an instruction treats alike. */
export function isPacked(name: string): boolean {
  return type.test(name) && /x[24]$/.test(name);
}
