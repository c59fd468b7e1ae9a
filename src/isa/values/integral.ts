/** The magnitude from which every fp64 number is an integer. */
const integersOnly = 2 ** 52;

function toEven(value: number): number {
  if (!(Math.abs(value) < integersOnly)) return value;
  const below = Math.floor(value);
  const rest = value - below;
  const rounded = rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
  return rounded === 0 && (value < 0 || Object.is(value, -0)) ? -0 : rounded;
}

/** PTX's modifiers for rounding to an integer; a zero has the sign of the operand. */
export const integerRoundings: Readonly<Record<string, (value: number) => number>> = {
  rni: toEven,
  rzi: Math.trunc,
  rmi: Math.floor,
  rpi: Math.ceil,
};

/** The same as a row's alternatives. */
export const integerRoundingModifiers = ['.rni', '.rzi', '.rmi', '.rpi'] as const;
