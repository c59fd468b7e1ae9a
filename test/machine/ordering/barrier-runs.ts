import {
  copyClock,
  Stamp,
  createBarrierHistory,
  createChains,
  createClock,
  includeInClock,
  joinClock,
  resetClock,
  tickClock,
  type BarrierViolation,
} from '../../../src/machine/ordering/index.js';

/** An event at a barrier; a `land` is the complete_tx of a transfer of one byte. */
export interface BarrierEvent {
  /** A warp, or from `agents` on a transfer. */
  readonly agent: number;
  readonly does: 'arrive' | 'arrive-expect' | 'expect' | 'issue' | 'land' | 'wait';
  readonly barrier: number;
  /** For a wait that of the phase that it waits for. */
  readonly parity: number;
  /** The phase that it was counted to, or that the wait waited for; for an issue 0. */
  readonly phase: number;
  /** For a `land` the index of its issue. */
  readonly issue: number;
}

/** A choice of the next event; what is not possible is left out. */
export interface Choice {
  readonly agent: number;
  readonly does: 'arrive' | 'load' | 'late-load' | 'land' | 'wait';
  readonly barrier: number;
}

interface BarrierState {
  phase: number;
  pending: number;
  bytes: number;
}

function settle(state: BarrierState, expected: number): boolean {
  if (state.pending > 0 || state.bytes !== 0) return false;
  state.phase++;
  state.pending = expected;
  return true;
}

/** Applies an event. Returns the phase that it is counted to, `blocked` or `over-arrival`. */
function apply(
  state: BarrierState,
  expected: number,
  { does, parity }: Pick<BarrierEvent, 'does' | 'parity'>,
): number | 'blocked' | 'over-arrival' {
  const { phase } = state;
  if (does === 'wait') return (phase & 1) === parity ? 'blocked' : phase - 1;
  if (does === 'issue') return 0;
  if (does === 'arrive' || does === 'arrive-expect') {
    if (state.pending === 0) return 'over-arrival';
    state.pending--;
  }
  if (does === 'expect' || does === 'arrive-expect') state.bytes++;
  if (does === 'land') state.bytes--;
  if (does !== 'expect') settle(state, expected);
  return phase;
}

const fresh = (counts: readonly number[]): BarrierState[] =>
  counts.map((pending) => ({ phase: 0, pending, bytes: 0 }));

/** A run in the order of the choices, on barriers that expect so many arrivals each. */
export function makeRun(
  choices: readonly Choice[],
  agents: number,
  counts: readonly number[],
): BarrierEvent[] {
  const states = fresh(counts);
  const events: BarrierEvent[] = [];
  const inFlight: BarrierEvent[] = [];
  let transfers = 0;
  const execute = (agent: number, does: BarrierEvent['does'], barrier: number, issue = -1) => {
    const state = states[barrier];
    // A wait that returns now, so that the run is never stuck.
    const parity = (state.phase + 1) & 1;
    const phase = apply(state, counts[barrier], { does, parity });
    if (typeof phase !== 'number') return false;
    events.push({ agent, does, barrier, parity, phase, issue });
    return true;
  };
  for (const choice of choices) {
    const barrier = choice.barrier % counts.length;
    const agent = choice.agent % agents;
    if (choice.does === 'land') {
      const transfer = inFlight.shift();
      if (transfer !== undefined) execute(transfer.agent, 'land', transfer.barrier, transfer.issue);
    } else if (choice.does === 'load' || choice.does === 'late-load') {
      if (!execute(agent, choice.does === 'load' ? 'arrive-expect' : 'expect', barrier)) continue;
      execute(agent, 'issue', barrier);
      const issue = events.length - 1;
      inFlight.push({ ...events[issue], agent: agents + transfers++, issue });
    } else execute(agent, choice.does, barrier);
  }
  for (const { agent, barrier, issue } of inFlight) execute(agent, 'land', barrier, issue);
  return events;
}

/** What the histories say of a run. */
export function violationsOf(
  events: readonly BarrierEvent[],
  agents: number,
  counts: readonly number[],
): BarrierViolation[] {
  const chains = createChains();
  const origin = createClock();
  const setUp = chains.createAgent();
  tickClock(origin, setUp);
  const rest = { proxy: 'generic', site: 'test', who: 'test', step: 0 } as const;
  const initialisation = new Stamp({ chain: setUp, time: 1, kind: 'arrive', ...rest });
  const histories = counts.map(() => createBarrierHistory(initialisation));
  const states = fresh(counts);
  const warps = Array.from({ length: agents }, () => {
    const chain = chains.createAgent();
    const clock = copyClock(origin);
    tickClock(clock, chain);
    return { chain, clock, asyncView: createClock() };
  });
  const transfers = new Map<number, (typeof warps)[number]>();
  const violations: BarrierViolation[] = [];
  events.forEach((event, index) => {
    const history = histories[event.barrier];
    const actor = event.does === 'land' ? transfers.get(event.issue)! : warps[event.agent];
    const { chain, clock } = actor;
    const stamp = new Stamp({
      chain,
      time: clock.times[chain],
      kind: event.does === 'wait' ? 'wait' : 'arrive',
      ...rest,
    });
    const { phase } = states[event.barrier];
    apply(states[event.barrier], counts[event.barrier], event);
    if (event.does === 'wait') {
      violations.push(...history.observe(stamp, actor));
      joinClock(clock, history.completed.clock);
      return;
    }
    if (event.does === 'issue') {
      const start = copyClock(clock);
      tickClock(clock, chain);
      const position = chains.begin(start);
      includeInClock(start, position.chain, position.time);
      transfers.set(index, { chain: position.chain, clock: start, asyncView: createClock() });
      return;
    }
    const tell = event.does === 'land' ? 'transact' : event.does === 'expect' ? 'expect' : 'arrive';
    violations.push(...history[tell](stamp, actor));
    if (states[event.barrier].phase > phase) violations.push(...history.complete());
    if (event.does !== 'land') tickClock(clock, chain);
    else resetClock(actor.clock);
  });
  return violations;
}

/**
 * What goes otherwise in some schedule of the warps and transfers of a run, by trying all of them up to
 * where they first differ; null if nothing does.
 */
export function findDeviation(
  events: readonly BarrierEvent[],
  counts: readonly number[],
): string | null {
  const threads = new Map<number, number[]>();
  events.forEach(({ agent }, index) => threads.set(agent, [...(threads.get(agent) ?? []), index]));
  const orders = [...threads.values()];
  // While all is as in the run, what has been executed determines the state of the barriers.
  const seen = new Set<string>();
  const open = [{ done: orders.map(() => 0), states: fresh(counts) }];
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const { done, states } = place;
    const key = done.join();
    if (seen.has(key)) continue;
    seen.add(key);
    let isStuck = true;
    let isOver = true;
    for (const [thread, order] of orders.entries()) {
      const index = order[done[thread]];
      if (index === undefined) continue;
      isOver = false;
      const event = events[index];
      const isIssued = (at: number) =>
        orders.some((other, its) => other.indexOf(at) >= 0 && other.indexOf(at) < done[its]);
      if (event.does === 'land' && !isIssued(event.issue)) continue;
      const after = states.map((state) => ({ ...state }));
      const phase = apply(after[event.barrier], counts[event.barrier], event);
      if (phase === 'blocked') continue;
      if (phase !== event.phase) return `event ${index} in ${phase} instead of ${event.phase}`;
      isStuck = false;
      open.push({
        done: done.map((count, its) => (its === thread ? count + 1 : count)),
        states: after,
      });
    }
    if (isStuck && !isOver) return `deadlock after ${key}`;
  }
  return null;
}
