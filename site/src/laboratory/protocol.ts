import type {
  ExperimentOutputs,
  ExperimentRequest,
  TechniqueTable,
} from '../../../src/browser/index.js';

/** A request, numbered: an answer to an old one is not shown. */
export interface ExperimentQuestion {
  readonly id: number;
  readonly request: ExperimentRequest;
}

/** What the run gave comes first, then the techniques; or why there is nothing. */
export type ExperimentAnswer = { readonly id: number } & (
  | { readonly kind: 'outputs'; readonly outputs: ExperimentOutputs; readonly seconds: number }
  | { readonly kind: 'table'; readonly table: TechniqueTable; readonly seconds: number }
  | { readonly kind: 'refused'; readonly line: string }
);
