/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

/**
 * Why something has its fate. The server's codes become sentences; anything else (the message of an object
 * that refused to be saved, for one) is shown as it is.
 */
export function reasonSentence(
  reason: string,
  trans: TranslationBundle
): string {
  switch (reason) {
    case 'temporary_storage':
      return trans.__(
        "lies in memory or in the container's own layer: gone once that is restarted"
      );
    case 'environment_on_container_disk':
      return trans.__(
        'gone after a cold start, unless the image has it; kept in a pod snapshot'
      );
    case 'network_storage':
      return trans.__(
        'lies on another machine: stays there, whatever happens to the kernel'
      );
    case 'object_storage':
      return trans.__(
        'lies in a bucket: its content stays there; open files on it are not promised to go on'
      );
    case 'storage_unknown':
      return trans.__(
        'what kind of storage this is cannot be told on this system'
      );
    case 'saved_state_only':
      return trans.__(
        'kept as last saved; what was typed since is known to the browser only'
      );
    case 'not_saved_yet':
      return trans.__('there is no such file (yet)');
    case 'reopened':
      return trans.__('opened again at the same position');
    case 'holder_unknown':
      return trans.__(
        'opened again if a variable holds it; a file that a library holds is not'
      );
    case 'outside_connection':
      return trans.__(
        'a connection to another program does not survive the end of the process'
      );
    case 'listening_socket':
      return trans.__('nobody listens any more once the process has ended');
    case 'child_process':
      return trans.__('ends together with the kernel');
    case 'helper_process':
      return trans.__(
        'a helper of Python itself; started again when it is needed'
      );
    case 'kernel_process':
      return trans.__(
        'the process ends and its memory is free; a new one takes its place'
      );
    case 'device_total':
      return trans.__(
        'used by all programs on this device together, not by this kernel alone'
      );
    case 'device_process':
      return trans.__(
        "used by this kernel's processes, as the driver counts it"
      );
    case 'gpu_unreadable':
      return trans.__(
        'the driver did not answer the question; there may be something on it'
      );
    case 'gpu_no_permission':
      return trans.__(
        'the driver refuses to tell (permission); there may be something on it'
      );
    case 'gpu_not_supported':
      return trans.__(
        'this driver or device does not tell; there may be something on it'
      );
    case 'gpu_timeout':
      return trans.__(
        'the driver did not answer in time; there may be something on it'
      );
    case 'gpu_other_vendor':
      return trans.__(
        'a GPU whose memory cannot be read here; there may be something on it'
      );
    case 'kernel_not_answering':
      return trans.__('the kernel did not answer; this is not known');
    default:
      return reason;
  }
}
