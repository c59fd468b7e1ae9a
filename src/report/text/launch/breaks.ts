import type { RunResult } from '../../../jobs/index.js';
import { plainText } from '../../../words/index.js';
import { alignTextColumns } from '../../layout/index.js';
import { readingsOf } from './register-readings.js';

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
