import type {
  ForwardOutputs,
  GivenGradients,
  KernelModel,
  KernelSettings,
} from '../../../kernels/index.js';
import type { TensorFile } from '../../io/tensors/index.js';
import type { Problem, Tensor } from '../../problem/index.js';
import type { ModelMatch } from '../../report/json/index.js';
import type { AuditCallbacks, AuditMeans } from './audit-kernel.js';
import type { AuditSettings } from './audit-settings.js';

/** Gradients to compare with kernel models, bit for bit. */
export interface MatchRequest {
  readonly problem: Problem;
  readonly dout: Tensor;
  /** The inputs of the kernel's backward pass; null if they are not known: the models' own forward pass is run. */
  readonly forward: ForwardOutputs | null;
  readonly given: GivenGradients;
  readonly threads: number;
}

/** A model with some of its settings chosen. */
export interface MatchCandidate {
  readonly model: KernelModel;
  readonly settings: KernelSettings;
}

/** Platform services that the audit of a file uses. */
export interface FileAuditMeans extends AuditMeans {
  /**
   * SHA-256 of a file in lower-case hexadecimal.
   * @throws RequestError where it cannot be read
   */
  readonly hash: (path: string) => Promise<string>;
  /**
   * Compares gradients with a declared model, and with all candidates of others, those that are nearest first; null where
   * no models can be run.
   */
  readonly matchModels:
    | ((
        request: MatchRequest,
        declared: MatchCandidate | null,
        others: readonly KernelModel[],
      ) => Promise<readonly ModelMatch[]>)
    | null;
}

/** The audit of a file that is open. */
export interface AuditWork {
  readonly file: TensorFile;
  readonly settings: AuditSettings;
  readonly means: FileAuditMeans;
  readonly progress: NonNullable<AuditCallbacks['progress']>;
  /** `performance.now()` when it began. */
  readonly start: number;
}
