import type {
  ClosedRunner,
  Crew,
  MeasuringTerms,
  PartRunner,
  SharedStage,
  Stage,
  StageProgress,
  Stages,
} from './stage.js';

/** Tells of a stage as the share of its name that it is. */
function toldBy<T extends MeasuringTerms>(
  { name, share: [from, to] = [0, 1] }: Stage<T>,
  progress: StageProgress,
): (done: number) => void {
  return (done) => progress(name, from + (to - from) * done);
}

/** Does a stage in this thread. */
function doHere<T extends MeasuringTerms>(stage: Stage<T>, progress: StageProgress): void {
  const told = toldBy(stage, progress);
  if ('work' in stage) return stage.work(told);
  const { requests, measure, settle } = stage;
  requests.forEach((request, index) => {
    const inner = (done: number) => told((index + done) / requests.length);
    settle(measure(request, inner), index);
    inner(1);
  });
}

/** Makes all measurements in this thread. */
export function measureHere<T extends MeasuringTerms>(
  stages: Stages<T>,
  progress: StageProgress,
): T['measured'] {
  for (;;) {
    const next = stages.next();
    if (next.done === true) return next.value;
    for (const stage of next.value) doHere(stage, progress);
  }
}

/** A request with its stage, and its place among that stage's requests. */
interface Placed<T extends MeasuringTerms> {
  readonly stage: SharedStage<T>;
  readonly request: T['request'];
  readonly index: number;
}

/**
 * Does stages in this thread and, at the same time, by a helper: each takes its requests. Answers are settled in the order of the
 * stages, as if this thread had measured all.
 */
async function doBeside<T extends MeasuringTerms>(
  stages: readonly SharedStage<T>[],
  helper: PartRunner<T['request'], T['answer']>,
  progress: StageProgress,
): Promise<void> {
  const all = stages.flatMap((stage) =>
    stage.requests.map((request, index): Placed<T> => ({ stage, request, index })),
  );
  const isAway = ({ stage, request }: Placed<T>) => stage.isForHelper?.(request) === true;
  const away = all.filter(isAway);
  const answers = new Map<Placed<T>, T['answer']>();
  const asked = helper.run(
    away.map(({ request }) => request),
    (answer, at) => void answers.set(away[at], answer),
    () => undefined,
  );
  const toldOf = ({ stage, index }: Placed<T>, done: number) =>
    toldBy(stage, progress)((index + done) / stage.requests.length);
  // Begun once the helper has its requests; an error here is thrown when the helper is done.
  const measured = Promise.resolve().then(() => {
    for (const placed of all)
      if (!isAway(placed)) {
        const { stage, request } = placed;
        answers.set(
          placed,
          stage.measure(request, (done) => toldOf(placed, done)),
        );
      }
  });
  const outcomes = await Promise.allSettled([measured, asked]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  for (const placed of all) {
    placed.stage.settle(answers.get(placed), placed.index);
    toldOf(placed, 1);
  }
}

/** Those who measure on some data. */
interface Workers<T extends MeasuringTerms> {
  readonly data: T['data'];
  readonly runner: ClosedRunner<T['request'], T['answer']> | null;
  readonly helper: PartRunner<T['request'], T['answer']> | null;
}

/** Makes all measurements, with others where that is worth it: the results are those of `measureHere`. */
export async function measureByCrew<T extends MeasuringTerms>(
  stages: Stages<T>,
  crew: Crew<T>,
  progress: StageProgress,
): Promise<T['measured']> {
  let workers: Workers<T> | null = null;
  const workersOf = async ({ data, isDivided, requests }: SharedStage<T>) => {
    if (workers?.data === data) return workers;
    await workers?.runner?.close();
    // Nobody is left to close if the next cannot be started.
    workers = null;
    workers = {
      data,
      runner: isDivided ? crew.start(data, requests.length) : null,
      helper: isDivided ? null : (crew.beside?.(data) ?? null),
    };
    return workers;
  };
  try {
    for (;;) {
      const next = stages.next();
      if (next.done === true) return next.value;
      const shared = next.value.filter((stage) => 'requests' in stage);
      const [first] = shared;
      const { helper } = first === undefined ? { helper: null } : await workersOf(first);
      if (helper !== null) {
        await doBeside(shared, helper, progress);
        continue;
      }
      for (const stage of next.value) {
        const runner = 'requests' in stage ? (await workersOf(stage)).runner : null;
        if ('work' in stage || runner === null) {
          doHere(stage, progress);
          continue;
        }
        const { requests, settle } = stage;
        const told = toldBy(stage, progress);
        await runner.run(requests, settle, (count) => told(count / requests.length));
      }
    }
  } finally {
    await (workers as Workers<T> | null)?.runner?.close();
  }
}
