import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** Members under which a value stands that JSON does not have. */
const numberKey = '$number';
const integerKey = '$integer';
const float64Key = '$float64';

/** More is never packed of one unit, and text that unpacks to more is refused: bytes, and fp64 numbers. */
const mostBytes = 2 ** 26;
const mostNumbers = 2 ** 20;

/** A number that JSON would change: −0, the infinities and NaN; by the text that `Number` reads. */
function portableNumber(value: number): unknown {
  if (Object.is(value, -0)) return { [numberKey]: '-0' };
  return Number.isFinite(value) ? value : { [numberKey]: String(value) };
}

function toPortable(value: unknown): unknown {
  if (typeof value === 'number') return portableNumber(value);
  if (typeof value === 'bigint') return { [integerKey]: String(value) };
  if (value instanceof Float64Array) {
    // Most of a histogram is zero: what follows its last number is left out.
    const end = value.findLastIndex((item) => !Object.is(item, 0)) + 1;
    return { [float64Key]: value.length, values: Array.from(value.subarray(0, end), toPortable) };
  }
  if (Array.isArray(value)) return value.map(toPortable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toPortable(item)]));
}

function fromPortable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromPortable);
  if (typeof value !== 'object' || value === null) return value;
  const fields = value as Readonly<Record<string, unknown>>;
  if (numberKey in fields) return Number(fields[numberKey]);
  if (integerKey in fields) return BigInt(fields[integerKey] as string);
  if (float64Key in fields) {
    const length = fields[float64Key] as number;
    if (!(length <= mostNumbers)) throw new RangeError(`no array of ${length} numbers is packed`);
    const array = new Float64Array(length);
    array.set((fields['values'] as readonly unknown[]).map((item) => fromPortable(item) as number));
    return array;
  }
  return Object.fromEntries(Object.entries(fields).map(([key, item]) => [key, fromPortable(item)]));
}

/**
 * A value as base64 text: JSON, DEFLATE-compressed, in which −0, infinities, NaN, big integers and
 * arrays of fp64 numbers keep their bits (a NaN its being one).
 */
export function packValue(value: unknown): string {
  return deflateRawSync(JSON.stringify(toPortable(value))).toString('base64');
}

/**
 * The value that `packValue` was given.
 * @throws Error for text that it did not make
 */
export function unpackValue(text: string): unknown {
  return fromPortable(
    JSON.parse(
      inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: mostBytes }).toString('utf8'),
    ),
  );
}
