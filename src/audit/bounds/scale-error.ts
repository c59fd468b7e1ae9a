/** The relative error of a factor that is rounded once to fp32. */
export function scaleErrorOf(exact: number): number {
  return exact === 0 ? 0 : Math.fround(exact) / exact - 1;
}
