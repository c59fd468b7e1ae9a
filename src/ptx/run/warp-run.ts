import type { Instruction, WarpProgram } from '../../machine/index.js';
import {
  clearRegisterTags,
  lowestLane,
  operandNumber,
  type IssuingWarp,
} from '../instructions/index.js';
import type { Item, LaneStretch, ProgramFunction, Terminator } from '../program/index.js';
import { siteAt } from '../syntax/index.js';
import type { ExecutableBlock, ExecutableProgram } from './executable.js';
import type { Loans } from './loans.js';
import {
  meet,
  type Whereabouts,
  copyLanes,
  countLanes,
  guardedLanes,
  maskName,
} from './meeting.js';

/** A running warp; its strands share it. */
export interface RunningWarp extends Whereabouts {
  readonly executable: ExecutableProgram;
  readonly issuing: Omit<IssuingWarp, 'lanes'>;
  /** The byte at which its registers begin. */
  readonly start: number;
  readonly loans: Loans;
  /** Executions of each item and terminator by its number, and lanes that executed it. */
  readonly executions: Float64Array;
  readonly lanes: Float64Array;
  /** The next value of a register that counts. */
  readonly count: () => number;
  /** Called before lanes execute a watched line. */
  readonly onWatched: (line: number, lanes: number) => void;
}

type Steps<Result = void> = Generator<Instruction, Result, void>;
type Special = Exclude<Item, LaneStretch>;

/**
 * Number of blocks that a warp may execute without a visible instruction; beyond it the warp is taken to have no end.
 */
const mostSilentBlocks = 2 ** 24;

/** The program of a warp: the kernel from its first block to its end. */
export function* runWarp(warp: RunningWarp): WarpProgram {
  const { entry } = warp.executable.program;
  yield* runBlocks(warp, entry, { lanes: warp.live, at: 0, stop: entry.blocks.length });
}

/**
 * Runs lanes that are converged from one block to another.
 *
 * @returns the lanes that have reached `stop`; the others have ended
 */
function* runBlocks(
  warp: RunningWarp,
  one: ProgramFunction,
  { lanes, at, stop }: { readonly lanes: number; readonly at: number; readonly stop: number },
): Steps<number> {
  const blocks = warp.executable.blocksOf(one);
  let [active, block, arrived, silent] = [lanes, at, 0, 0];
  while (active !== 0 && block !== stop) {
    const { items, terminator, number, watched, join }: ExecutableBlock = blocks[block];
    for (const { item, number: itemNumber, run, watched: line, touched } of items) {
      if (run !== null && !warp.loans.isEmpty()) yield* takeBackFor(warp, item);
      if (line !== null) warp.onWatched(line, active);
      warp.executions[itemNumber]++;
      if (run !== null) {
        warp.lanes[itemNumber] += countLanes(active);
        run(warp.start, active);
        if (touched !== null) warp.issuing.registerFences.touch(touched);
        continue;
      }
      silent = 0;
      if (touched !== null) noteTouch(warp, item, touched, active);
      active = yield* runItem(warp, item, itemNumber, active);
      if (active === 0) return arrived;
    }
    if (++silent > mostSilentBlocks) {
      const message = `no end after ${mostSilentBlocks} blocks without memory or barriers`;
      yield { op: 'report', kind: 'trap', message, site: siteAt(one.line, one.name) };
      warp.live &= ~active;
      return arrived;
    }
    if (terminator.kind === 'goto') {
      block = terminator.target;
      continue;
    }
    if (watched !== null) warp.onWatched(watched, active);
    warp.executions[number]++;
    warp.lanes[number] += countLanes(active);
    if (terminator.kind === 'exit') {
      const leaving = guardedLanes(warp.issuing.registers, terminator.guard, active);
      warp.live &= ~leaving;
      active &= ~leaving;
      if (terminator.next === null) return arrived;
      block = terminator.next;
      continue;
    }
    const ways = yield* waysOf(warp, terminator, active);
    // Lanes at the end of the strand just leave it, so that loops do not nest.
    for (const way of ways) if (way.target === stop) arrived |= way.lanes;
    warp.parked |= arrived;
    const rest = ways.filter(({ target }) => target !== stop);
    if (rest.length <= 1) {
      [active, block] = rest.length === 0 ? [0, stop] : [rest[0].lanes, rest[0].target];
      continue;
    }
    active = yield* diverge(warp, one, rest, join);
    warp.parked &= ~active;
    block = join;
  }
  return arrived | active;
}

/** Notes that an item other than a stretch has accessed registers of wgmma, if some lane executes it. */
function noteTouch(
  { issuing: { registers, registerFences } }: RunningWarp,
  { guard }: Special,
  touched: readonly number[],
  active: number,
): void {
  if (guardedLanes(registers, guard, active) !== 0) registerFences.touch(touched);
}

/** Lanes that go to one block. */
interface Way {
  readonly target: number;
  readonly lanes: number;
}

/** The targets of lanes at the end of a block, with the lanes of the same target together. */
function* waysOf(
  warp: RunningWarp,
  terminator: Extract<Terminator, { kind: 'branch' | 'table' }>,
  active: number,
): Steps<readonly Way[]> {
  const { registers } = warp.issuing;
  const guarded = guardedLanes(registers, terminator.guard, active);
  const { next } = terminator;
  const lanesOf = new Map<number, number>();
  const add = (target: number, lanes: number) => {
    if (lanes !== 0) lanesOf.set(target, (lanesOf.get(target) ?? 0) | lanes);
  };
  add(next, active & ~guarded);
  if (terminator.kind === 'branch') add(terminator.target, guarded);
  else {
    const { index, targets, site } = terminator;
    const words = 'offset' in index ? registers.words(index) : null;
    for (let rest = guarded; rest !== 0; rest &= rest - 1) {
      const lane = lowestLane(rest);
      const value =
        words === null || !('offset' in index)
          ? Number('bits' in index && index.bits)
          : words[lane];
      const bit = 1 << lane;
      if (value < targets.length) add(targets[value], bit);
      else {
        const message = `lane ${lane} has index ${value} in a list of ${targets.length} labels`;
        yield { op: 'report', kind: 'trap', message, site };
        warp.live &= ~bit;
      }
    }
  }
  return [...lanesOf].map(([target, lanes]) => ({ target, lanes }));
}

/**
 * Runs parted lanes to the block where they meet again: each way as a strand of its own, so that none waits for
 * another; lanes that are already there wait.
 *
 * @returns the lanes that have arrived there
 */
function* diverge(
  warp: RunningWarp,
  one: ProgramFunction,
  ways: readonly Way[],
  join: number,
): Steps<number> {
  let arrived = 0;
  for (const { target, lanes } of ways) if (target === join) arrived |= lanes;
  warp.parked |= arrived;
  const running = ways.filter(({ target }) => target !== join);
  const runWay = ({ target, lanes }: Way) =>
    runBlocks(warp, one, { lanes, at: target, stop: join });
  if (running.length === 1) return arrived | (yield* runWay(running[0]));
  const strands = running.map((way) => ({
    name: `lanes ${maskName(way.lanes)}`,
    program: (function* (): WarpProgram {
      const lanes = yield* runWay(way);
      warp.parked |= lanes;
      arrived |= lanes;
    })(),
  }));
  yield { op: 'diverge', strands };
  return arrived;
}

/** Runs an item other than a stretch; returns the lanes that go on. */
function* runItem(warp: RunningWarp, item: Special, number: number, active: number): Steps<number> {
  const { issuing, loans } = warp;
  const { registers } = issuing;
  const lanes = guardedLanes(registers, item.guard, active);
  // An instruction that no lane executes is not issued.
  if (lanes === 0) return active;
  warp.lanes[number] += countLanes(lanes);
  if (!loans.isEmpty()) yield* takeBackFor(warp, item);
  const { site } = item;
  switch (item.kind) {
    case 'visible':
      forgetTags(warp, item, lanes);
      if (!item.operation.isAligned) {
        yield* item.operation.issue({ ...issuing, lanes });
        warp.executable.tracer?.read?.(registers, item.operation.writes, lanes, issuing.warp, site);
      } else {
        const all = yield* meet(warp, { number, site }, lanes, () => warp.live);
        if (all !== 0) yield* item.operation.issue({ ...issuing, lanes: all });
      }
      return active;
    case 'warp': {
      const needed = () => neededLanes(warp, item, lanes);
      const all = yield* meet(warp, { number, site }, lanes, needed);
      const message = all === 0 ? null : executeItem(warp, item, all);
      if (message !== null) yield { op: 'report', kind: 'convergence', message, site };
      return active;
    }
    case 'call': {
      for (const { from, to } of item.arguments) copyLanes(registers, from, to, lanes);
      const { callee } = item;
      const stop = callee.blocks.length;
      const back = yield* runBlocks(warp, callee, { lanes, at: 0, stop });
      for (const { from, to } of item.results) copyLanes(registers, from, to, back);
      return (active & ~lanes) | back;
    }
    case 'count': {
      const value = { bits: BigInt(warp.count()), width: item.slot.width };
      copyLanes(registers, value, item.slot, lanes);
      return active;
    }
    case 'trap':
      yield { op: 'report', kind: 'trap', message: item.reason, site };
      warp.live &= ~lanes;
      return active & ~lanes;
  }
}

/**
 * Takes the tags from the registers that an instruction writes, before it does: their values are new, unless it moves others
 * there. Those that it reads keep them.
 */
function forgetTags(
  { issuing: { registers } }: RunningWarp,
  { operation }: Extract<Special, { kind: 'visible' | 'warp' }>,
  lanes: number,
): void {
  if (registers.followed === null) return;
  const reads = new Set(operation.reads.map(({ offset }) => offset));
  const fresh = operation.writes.filter(
    ({ offset, width }) => width !== 'pred' && !reads.has(offset),
  );
  clearRegisterTags(registers, fresh, lanes);
}

/** Executes a warp instruction; returns its fault, or null. */
function executeItem(
  warp: RunningWarp,
  item: Extract<Special, { kind: 'warp' }>,
  lanes: number,
): string | null {
  const { operation, site } = item;
  const { registers } = warp.issuing;
  const { tracer } = warp.executable;
  if (tracer === null) return operation.execute(registers, lanes);
  const { meaning, tracesItself, reads } = operation;
  if (meaning === 'decides') tracer.decide(registers, reads, lanes, site);
  if (meaning === 'moves' || tracesItself === true) {
    forgetTags(warp, item, lanes);
    return operation.execute(registers, lanes);
  }
  const fault = operation.execute(registers, lanes);
  if (meaning === 'decides') clearRegisterTags(registers, operation.writes, lanes);
  else tracer.loseRegisters(registers, operation, lanes, site);
  return fault;
}

/** The lanes that must execute a warp instruction together. */
function neededLanes(
  warp: RunningWarp,
  { operation, mask }: Extract<Special, { kind: 'warp' }>,
  lanes: number,
): number {
  if (operation.converged === 'none') return 0;
  if (operation.converged === 'warp' || mask === null) return warp.live;
  return operandNumber(warp.issuing.registers, mask, lowestLane(lanes)) & warp.live;
}

/** Takes back the loans of the registers that an item touches. */
function takeBackFor(warp: RunningWarp, item: Item): Steps {
  const { loans } = warp;
  if (item.kind === 'lanes') {
    return loans.takeBack(
      (offset) => item.reads.has(offset) || item.writes.has(offset),
      siteAt(item.operations[0]?.line ?? 0, 'registers'),
    );
  }
  const { site } = item;
  if (item.kind === 'visible' || item.kind === 'warp') {
    const { reads, writes } = item.operation;
    const lends = item.kind === 'visible' ? item.operation.lends : [];
    const touched = new Set([...reads, ...writes].map(({ offset }) => offset));
    return loans.takeBack((offset) => touched.has(offset), site, lends);
  }
  // The operands of a call may be on loan, and the effects of the function are unknown.
  return loans.takeBack(() => item.kind === 'call', site);
}
