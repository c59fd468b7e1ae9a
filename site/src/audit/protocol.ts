import type { AuditWords } from '../../../src/browser/index.js';

/** A file of the page, by its name. */
export type NamedFile = readonly [name: string, content: File];

/** What the page asks its worker for. */
export type AuditQuestion =
  | { readonly kind: 'list'; readonly files: readonly NamedFile[] }
  | {
      readonly kind: 'audit';
      readonly files: readonly NamedFile[];
      /** The file of the problem. */
      readonly path: string;
      readonly words: Partial<AuditWords>;
      readonly threads: number;
    };

/** A tensor of a file, as a person chooses it. */
export interface ListedTensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
}

/** A file, with its tensors or with why it cannot be read. */
export type ListedFile = { readonly name: string } & (
  | {
      readonly tensors: readonly ListedTensor[];
      /** What q, k, v, O and the LSE likely are, where the file has them under other names. */
      readonly likely: Readonly<Partial<Record<'q' | 'k' | 'v' | 'out' | 'lse', string>>>;
    }
  | { readonly refusal: string }
);

/** What the worker answers; `progress` any number of times. */
export type AuditAnswer =
  | {
      readonly kind: 'listed';
      readonly files: readonly ListedFile[];
      /** Kernel models and presets that a kernel can be judged by. */
      readonly judgedNames: readonly string[];
    }
  | { readonly kind: 'progress'; readonly stage: string; readonly done: number }
  | {
      readonly kind: 'judged';
      readonly pass: boolean;
      readonly sentence: string;
      /** The report as HTML and as JSON. */
      readonly page: string;
      readonly json: string;
      /** The command line that gives the same. */
      readonly command: string;
      readonly seconds: number;
    }
  | { readonly kind: 'refused'; readonly line: string };
