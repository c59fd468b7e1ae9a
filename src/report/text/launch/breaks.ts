import { decode, formats, round, type FormatName } from '../../../formats/index.js';
import type { RunResult } from '../../../jobs/index.js';
import { plainText } from '../../../words/index.js';
import { alignTextColumns } from '../../layout/index.js';

/** One way to read the bits of a register. */
interface Reading {
  /** `s32`, `f32`, … */
  readonly type: string;
  readonly read: (bits: bigint) => string;
}

/** Floating-point types of PTX, with the number of digits that distinguishes any two of their numbers. */
const floats: Readonly<Record<string, { readonly format: FormatName; readonly digits: number }>> = {
  f16: { format: 'fp16', digits: 5 },
  bf16: { format: 'bf16', digits: 4 },
  f32: { format: 'fp32', digits: 9 },
  f64: { format: 'fp64', digits: 17 },
};

/** The shortest decimal number that rounds to a value of a format. */
function shortest(value: number, format: FormatName, digits: number): string {
  if (!Number.isFinite(value) || value === 0) return Object.is(value, -0) ? '-0' : String(value);
  for (let count = 1; count < digits; count++) {
    const near = Number(value.toPrecision(count));
    if (round(formats[format], near) === value) return String(near);
  }
  return String(Number(value.toPrecision(digits)));
}

function floatReading(type: string): Reading {
  const { format, digits } = floats[type];
  const { storageBits } = formats[format];
  return {
    type,
    read: (bits) => {
      const pattern = BigInt.asUintN(storageBits, bits);
      const value = decode(formats[format], format === 'fp64' ? pattern : Number(pattern));
      return shortest(value, format, digits);
    },
  };
}

function integerReading(type: string): Reading {
  const bits = Number(type.slice(1));
  const cut = type.startsWith('s') ? BigInt.asIntN : BigInt.asUintN;
  return { type, read: (value) => String(cut(bits, value)) };
}

/** Two numbers of 16 bits in a register, the low one first. */
function pairReading(type: string): Reading {
  const { read } = floatReading(type.slice(0, -2));
  return { type, read: (bits) => `${read(bits)}, ${read(bits >> 16n)}` };
}

/** The types that bits without a type may have. */
const ofBits: Readonly<Record<string, readonly string[]>> = {
  b8: ['s8'],
  b16: ['s16', 'f16', 'bf16'],
  b32: ['s32', 'f32'],
  b64: ['s64', 'f64'],
};

/** The readings of a register that an instruction gives a type: bits alone in each type that they may have. */
export function readingsOf(type: string): readonly Reading[] {
  if (type === 'pred') return [{ type, read: (bits) => (bits === 0n ? 'false' : 'true') }];
  if (type in floats) return [floatReading(type)];
  if (type.endsWith('x2')) return [pairReading(type)];
  if (/^[us][0-9]+$/.test(type)) return [integerReading(type)];
  return (ofBits[type] ?? []).flatMap(readingsOf);
}

type Stop = RunResult['run']['stops'][number];
type Values = Stop['registers'][number];
type Breakpoint = Stop['breakpoint'];

const warpLanes = 32;

const hexOf = (bits: bigint, width: Values['width']): string => {
  const digits = width === 'pred' ? 1 : width / 4;
  return `0x${bits.toString(16).padStart(digits, '0')}`;
};

/** Remarks on a register beside its values. */
function remarkOf({ isGuard, isLent }: Values): readonly string[] {
  return [...(isGuard ? ['the guard'] : []), ...(isLent ? ['an operation uses it'] : [])];
}

/** The registers of one thread, a line each. */
function threadLines(registers: readonly Values[]): readonly string[] {
  const rows = registers.map((register) => {
    const { name, type, width, bits } = register;
    const [value] = bits;
    const read = readingsOf(type).map((one) => `${one.read(value)} (${one.type})`);
    const remarks = remarkOf(register);
    return [
      `  ${plainText(name)}`,
      hexOf(value, width),
      read.join(', ') + (remarks.length === 0 ? '' : `; ${remarks.join(', ')}`),
    ];
  });
  return alignTextColumns(rows);
}

/** A register of all lanes: one line where they are equal, otherwise two lanes to a line. */
function warpLines(register: Values): readonly string[] {
  const { name, type, width, bits } = register;
  const readings = readingsOf(type);
  const cells = (lane: number) => [
    hexOf(bits[lane], width),
    ...readings.map(({ read }) => read(bits[lane])),
  ];
  const types = readings.map((one) => one.type);
  const about = [types.length === 0 ? type : types.join(' and '), ...remarkOf(register)];
  const title = `  ${plainText(name)} (${about.join(', ')})`;
  if (bits.every((value) => value === bits[0]))
    return [`${title}, all lanes: ${cells(0).join('  ')}`];
  const half = warpLanes / 2;
  const rows = Array.from({ length: half }, (_, lane) => [
    `    ${String(lane).padStart(2)}`,
    ...cells(lane),
    String(lane + half),
    ...cells(lane + half),
  ]);
  return [title, ...alignTextColumns(rows)];
}

const whoOf = ({ cta, warp, lane }: Breakpoint): string =>
  lane === null
    ? `CTA ${cta}, warp ${warp}`
    : `CTA ${cta}, thread ${warp * warpLanes + lane} (warp ${warp}, lane ${lane})`;

function stopLines({ breakpoint, time, lanes, registers }: Stop, text: string): readonly string[] {
  const { line, lane } = breakpoint;
  const active = lanes === -1 ? 'all lanes' : `lanes 0x${(lanes >>> 0).toString(16)}`;
  const values = lane === null ? registers.flatMap(warpLines) : threadLines(registers);
  return [
    `Before line ${line}, ${whoOf(breakpoint)}, time ${time}${lane === null ? `, ${active}` : ''}: ${plainText(text)}`,
    ...(values.length === 0 ? ['  it has no registers'] : values),
    '',
  ];
}

/** The values of registers at the lines of --break, in the order of the run; and the lines that were not executed. */
export function breakLines({ opened, run, request }: RunResult): readonly string[] {
  const lines = opened.ptx.split(/\r?\n/);
  const unmet = (request.breaks ?? []).filter(
    (one) => !run.stops.some(({ breakpoint }) => breakpoint === one),
  );
  return [
    ...run.stops.flatMap((stop) =>
      stopLines(stop, lines[stop.breakpoint.line - 1].trim().replace(/\s+/g, ' ')),
    ),
    ...unmet.flatMap((one) => [`Line ${one.line} was not executed by ${whoOf(one)}`, '']),
  ];
}
