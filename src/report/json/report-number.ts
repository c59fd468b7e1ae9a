/**
 * A number in a report. JSON has no NaN and no infinities, so these three are strings; every other
 * number is a JSON number that reads back to the same fp64 value. Zero has no sign in a report.
 */
export type ReportNumber = number | 'NaN' | 'Infinity' | '-Infinity';

/** A plain value in its reported form: the same except for its numbers. */
export type Reported<T> = T extends number
  ? ReportNumber
  : T extends string | boolean | null | undefined
    ? T
    : { readonly [Key in keyof T]: Reported<T[Key]> };

function mapLeaves(value: unknown, change: (leaf: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => mapLeaves(item, change));
  if (typeof value !== 'object' || value === null) return change(value);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, mapLeaves(item, change)]),
  );
}

function reportNumber(value: number): ReportNumber {
  if (Number.isNaN(value)) return 'NaN';
  if (value === Infinity) return 'Infinity';
  if (value === -Infinity) return '-Infinity';
  // JSON.stringify writes -0 as 0; dropping the sign here keeps the report equal to what it reads as.
  return value === 0 ? 0 : value;
}

const nonFinite: ReadonlyMap<unknown, number> = new Map([
  ['NaN', NaN],
  ['Infinity', Infinity],
  ['-Infinity', -Infinity],
]);

/**
 * A copy of a tree of plain objects and arrays that JSON can hold: NaN and infinities as strings,
 * −0 as 0, undefined properties left out.
 */
export function toReported<T>(value: T): Reported<T> {
  return mapLeaves(value, (leaf) =>
    typeof leaf === 'number' ? reportNumber(leaf) : leaf,
  ) as Reported<T>;
}

/**
 * The inverse of `toReported`, except for the sign of zeros: the strings "NaN", "Infinity" and
 * "-Infinity" become numbers everywhere, so it is for trees without free text.
 */
export function fromReported<T>(value: Reported<T>): T {
  return mapLeaves(value, (leaf) => nonFinite.get(leaf) ?? leaf) as T;
}
