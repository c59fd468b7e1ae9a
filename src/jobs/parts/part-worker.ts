import { workerData } from 'piscina';
import { WorkingMemories } from '../../../oracles/index.js';
import { machineFiles } from '../../io/index.js';
import type { PartRequest } from '../../audit/index.js';
import { threadWork, type PartThreadData } from '../audit/index.js';

/** The functions of a worker thread of an audit, for one request at a time. */
export const { measureRequest, measureGroup, boundRequest, measureRecurrence } = threadWork(
  workerData,
  machineFiles,
);

/** Working memory of this thread, for as long as it lives. */
const memories = new WorkingMemories();

/** A request to a thread that outlives an audit, with the data that an audit's own threads are given once. */
export interface RequestWithData {
  readonly data: PartThreadData;
  readonly request: PartRequest;
}

/** Measures a part of an audit that the thread was not started for. */
export function measureWithData({ data, request }: RequestWithData) {
  return threadWork(data, machineFiles, memories).measureRequest(request);
}

/** Answers once this thread is loaded. */
export function load(): object {
  return {};
}
