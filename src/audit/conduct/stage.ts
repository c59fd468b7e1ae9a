/** Measures requests somewhere else, in threads perhaps. */
export interface PartRunner<Request, Answer> {
  /**
   * Measures the requests and settles their answers in the requests' order.
   * @param done called with how many are measured, now and then
   */
  readonly run: (
    requests: readonly Request[],
    settle: (answer: Answer, index: number) => void,
    done: (count: number) => void,
  ) => Promise<void>;
}

/** A runner that is to be closed. */
export interface ClosedRunner<Request, Answer> extends PartRunner<Request, Answer> {
  readonly close: () => Promise<void>;
}

/** Called with a stage's name and the share of it that is done. */
export type StageProgress = (stage: string, done: number) => void;

/** The types of what is measured in parts. */
export interface MeasuringTerms {
  /** A request to measure a part, and its answer: data that a thread may send. */
  readonly request: unknown;
  readonly answer: unknown;
  /** Data that all requests of a stage are measured from: a thread is sent them once. */
  readonly data: unknown;
  /** All measurements of a problem. */
  readonly measured: unknown;
}

/** The types of what is measured, of any terms that have more. */
export type Measurements<T extends MeasuringTerms> = Pick<T, keyof MeasuringTerms>;

/** The part of a stage that is told to whoever waits. */
interface NamedStage {
  /** The name in reports of progress. */
  readonly name: string;
  /** The share of all under this name that it does; default: all, [0, 1]. */
  readonly share?: readonly [from: number, to: number];
}

/** A stage that the conducting thread does alone. */
export interface OwnStage extends NamedStage {
  readonly work: (progress: (done: number) => void) => void;
}

/** A stage of requests that do not depend on one another. */
export interface SharedStage<T extends MeasuringTerms> extends NamedStage {
  readonly requests: readonly T['request'][];
  readonly data: T['data'];
  /** Whether other threads are worth it; if not, one that runs already may help. */
  readonly isDivided: boolean;
  /** Whether a thread that helps measures a request; default: none. */
  readonly isForHelper?: (request: T['request']) => boolean;
  /** Measures a request in this thread. */
  readonly measure: (request: T['request'], progress: (done: number) => void) => T['answer'];
  /** Takes the answers, in the order of the requests. */
  readonly settle: (answer: T['answer'], index: number) => void;
}

/** One stage of measurements. */
export type Stage<T extends MeasuringTerms> = OwnStage | SharedStage<T>;

/** Stages that do not depend on one another, and after them those that do; in the end all measurements. */
export type Stages<T extends MeasuringTerms> = Generator<
  readonly Stage<T>[],
  T['measured'],
  undefined
>;

/** Others who measure parts. */
export interface Crew<T extends MeasuringTerms> {
  /** Starts a runner for so many requests on these data; null where this thread is to measure them. */
  readonly start: (
    data: T['data'],
    requests: number,
  ) => ClosedRunner<T['request'], T['answer']> | null;
  /**
   * A runner that measures some requests of stages that are not divided while this thread measures the others; null where this
   * thread measures all.
   */
  readonly beside?: (data: T['data']) => PartRunner<T['request'], T['answer']> | null;
}
