import { findKernelModel, type KernelProgram, type ProgramMutant } from '../../kernels/index.js';
import { timedScheduler, trackOf, type TraceEvent } from '../machine/index.js';
import { RequestError } from '../request-error.js';
import { randomProblem } from './laboratory.js';

/** A run of FlashAttention-4's forward on the emulated machine. */
export interface TimelineRequest {
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  readonly ctas: 1 | 2;
  /** The id of a mistake in the synchronisation; null for none. */
  readonly mutant: string | null;
}

/** A row of the timeline. */
export interface TimelineTrack {
  /** Its number among the tracks of all CTAs, in the order of display. */
  readonly id: number;
  readonly cta: number;
  readonly name: string;
  readonly isWarp: boolean;
}

/** An action of a warp or a unit, in clocks from the start of the kernel. */
export interface TimelineEvent {
  readonly track: number;
  /** Name of the action; for a wait, that of the awaited event. */
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly isWait: boolean;
}

/** The events of the first cluster. */
export interface Timeline {
  readonly tracks: readonly TimelineTrack[];
  readonly events: readonly TimelineEvent[];
  readonly clocks: number;
  /** Whether all warps came to their end: a deadlock has none. */
  readonly isComplete: boolean;
  readonly findings: readonly string[];
  /** Whether the findings, or their absence, hold for every schedule of this run. */
  readonly speaksForAllSchedules: boolean;
}

/** Rows of the units of a CTA come first, then its warps; more than either has. */
const ctaTracks = 1000;

/** The program that is shown. */
async function timelineProgram(): Promise<KernelProgram> {
  const program = await findKernelModel('fa4').program?.();
  if (program === undefined) throw new RequestError('fa4 has no program for the machine');
  return program;
}

/** A mistake in the synchronisation: its id, what goes wrong, and whether it is one in a pair of CTAs only. */
export type TimelineMutant = Pick<ProgramMutant, 'id' | 'description' | 'needsPair'>;

/** The mistakes that the program can be given. */
export async function timelineMutants(): Promise<readonly TimelineMutant[]> {
  const { mutants } = await timelineProgram();
  return mutants.map(({ id, description, needsPair }) => ({ id, description, needsPair }));
}

/**
 * Runs the first cluster by the clocks of an SM's units and keeps the actions of every warp and unit.
 * @throws RequestError for a problem that the program does not run, and for an unknown mutant
 */
export async function recordTimeline({
  mutant: id,
  ctas,
  ...size
}: TimelineRequest): Promise<Timeline> {
  const program = await timelineProgram();
  const mutant = id === null ? undefined : program.mutants.find((known) => known.id === id);
  if (id !== null && mutant === undefined)
    throw new RequestError(
      `no mutant ${JSON.stringify(id)}; flashproof emulate list --machine names them`,
    );
  const traced: TraceEvent[] = [];
  const prepared = program.prepare(
    randomProblem({ format: 'bf16', spread: 1, seed: 1, ...size }),
    new Map(),
    {
      races: true,
      isaFences: false,
      scheduler: () => timedScheduler(),
      ctas,
      trace: (event, cluster) => {
        if (cluster === 0) traced.push(event);
      },
      ...(mutant === undefined ? {} : { mutant }),
    },
  );
  const { clocks, isComplete, findings, speaksForAllSchedules } = prepared.run(0);
  const tracks = new Map<number, TimelineTrack>();
  const events = traced.map((event): TimelineEvent => {
    const { cta, name, start, end, isWait } = event;
    const shown = trackOf(event, (warp) => program.warpNames[warp]);
    const track = cta * ctaTracks + shown.id;
    const isWarp = typeof event.track === 'number';
    if (!tracks.has(track)) tracks.set(track, { id: track, cta, name: shown.name, isWarp });
    return { track, name, start, end, isWait };
  });
  return {
    tracks: [...tracks.values()].sort((a, b) => a.id - b.id),
    events,
    clocks,
    isComplete,
    speaksForAllSchedules,
    findings: findings.map(({ kind, message }) => `${kind}: ${message}`),
  };
}
