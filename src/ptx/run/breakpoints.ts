import { RequestError } from '../../request-error.js';
import { hasLane, operandBits } from '../instructions/index.js';
import type { Launch } from '../launch/index.js';
import type { Program, WatchedRegister } from '../program/index.js';
import type { WatchedStop } from './cluster-warps.js';

const warpLanes = 32;
const volume = (extents: readonly number[]) => extents.reduce((all, one) => all * one, 1);

/** A line of the PTX at which the registers of a warp, or of one thread, are read before it is executed. */
export interface Breakpoint {
  /** Line in the PTX, from 1. */
  readonly line: number;
  /** The CTA's number in the grid, x first. */
  readonly cta: number;
  readonly warp: number;
  /** One lane, or null for all. */
  readonly lane: number | null;
  /** Number of its executions that are kept. */
  readonly times: number;
}

/** The values of a register. */
export interface RegisterValues extends Pick<WatchedRegister, 'name' | 'type' | 'isGuard'> {
  readonly width: WatchedRegister['slot']['width'];
  /** Whether a pending operation uses it, so that the bits are those from before. */
  readonly isLent: boolean;
  /** The bits of one lane, or of all 32. */
  readonly bits: readonly bigint[];
}

/** A warp before it executed the line of a breakpoint. */
export interface BreakStop {
  readonly breakpoint: Breakpoint;
  /** Number of visits to the line so far, from 1. */
  readonly time: number;
  /** The lanes that execute the line: bit l for lane l. A guard may still exclude some of them. */
  readonly lanes: number;
  readonly registers: readonly RegisterValues[];
}

/** Collects the values of registers. */
export interface BreakCollector {
  readonly add: (stop: WatchedStop) => void;
  /** All stops so far. */
  readonly stops: readonly BreakStop[];
}

/** Lines with instructions of a program, in order. */
function executableLines({ functions }: Program): readonly number[] {
  const lines = functions.flatMap(({ blocks }) =>
    blocks.flatMap(({ items, terminator }) => [
      ...items.flatMap((item) =>
        item.kind === 'lanes' ? item.operations.map(({ line }) => line) : [item.line],
      ),
      ...(terminator.kind === 'goto' ? [] : [terminator.line]),
    ]),
  );
  return [...new Set(lines)].sort((a, b) => a - b);
}

/**
 * Checks a breakpoint.
 * @throws RequestError for a breakpoint where nothing can be read
 */
function checkBreakpoint(
  { line, cta, warp, lane }: Breakpoint,
  { grid, block }: Pick<Launch, 'grid' | 'block'>,
  lines: readonly number[],
  file: string,
): void {
  if (!lines.includes(line)) {
    const before = lines.filter((one) => one < line).at(-1);
    const after = lines.find((one) => one > line);
    const near = [before, after].filter((one) => one !== undefined).join(' and ');
    throw new RequestError(
      `${file}: line ${line} has no instruction that the kernel executes; the nearest ${near.includes('and') ? 'are' : 'is'} ${near}`,
    );
  }
  const [ctas, threads] = [volume(grid), volume(block)];
  if (cta >= ctas)
    throw new RequestError(`there is no CTA ${cta} to break in; the grid has ${ctas}, from 0`);
  if (warp * warpLanes + (lane ?? 0) >= threads)
    throw new RequestError(
      `there is no ${lane === null ? `warp ${warp}` : `thread ${warp * warpLanes + lane}`} to break in; a CTA has ${threads} threads, from 0`,
    );
}

/**
 * Checks that registers can be read at breakpoints.
 *
 * @param file name of the PTX in messages
 * @throws RequestError for a line without an instruction, and for a CTA, warp or thread that does not
 * exist
 */
export function checkBreakpoints(
  program: Program,
  launch: Pick<Launch, 'grid' | 'block'>,
  breakpoints: readonly Breakpoint[],
  file: string,
): void {
  if (breakpoints.length === 0) return;
  const lines = executableLines(program);
  for (const one of breakpoints) checkBreakpoint(one, launch, lines, file);
}

/** A collector for breakpoints of a program. */
export function createBreakCollector(
  program: Program,
  launch: Pick<Launch, 'grid'>,
  breakpoints: readonly Breakpoint[],
): BreakCollector {
  const times = new Map<Breakpoint, number>();
  const stops: BreakStop[] = [];
  const [width, height] = launch.grid;
  return {
    stops,
    add: ({ line, cta: [x, y, z], warp, lanes, registers, isLent }) => {
      const cta = x + width * (y + height * z);
      for (const breakpoint of breakpoints) {
        if (breakpoint.line !== line || breakpoint.cta !== cta || breakpoint.warp !== warp)
          continue;
        const { lane } = breakpoint;
        if (lane !== null && !hasLane(lanes, lane)) continue;
        const time = (times.get(breakpoint) ?? 0) + 1;
        times.set(breakpoint, time);
        if (time > breakpoint.times) continue;
        const chosen = lane === null ? Array.from({ length: warpLanes }, (_, i) => i) : [lane];
        const watched = program.watched.get(line) ?? [];
        stops.push({
          breakpoint,
          time,
          lanes,
          registers: watched.map(({ name, slot, type, isGuard }) => ({
            name,
            type,
            isGuard,
            width: slot.width,
            isLent: isLent(slot.offset),
            bits: chosen.map((one) =>
              operandBits(registers, { kind: 'register', slot, name }, one),
            ),
          })),
        });
      }
    },
  };
}
