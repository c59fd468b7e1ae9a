import type { ChunkChange, ChunkParts, ChunkPlace, ChunkStage } from '../chunk-parts.js';
import { runFault, type FaultSetting } from './fault.js';

/** A change at one stage. */
export const at =
  (
    stage: ChunkStage,
    change: (parts: ChunkParts, place: ChunkPlace, state: Float64Array) => void,
  ): ChunkChange =>
  (now, parts, place, state) => {
    if (now === stage) change(parts, place, state);
  };

/** A fault of the chunked form that changes a chunk at a stage. */
export const chunkFault = (
  id: string,
  sentence: string,
  appliesTo: (setting: FaultSetting) => boolean,
  change: (setting: FaultSetting) => ChunkChange,
) => runFault(id, sentence, appliesTo, (setting) => ({ form: 'chunked', change: change(setting) }));
