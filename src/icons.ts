/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { LabIcon } from '@jupyterlab/ui-components';

import busySvg from '../style/icons/busy.svg';
import pauseSvg from '../style/icons/pause.svg';
import pausedSvg from '../style/icons/paused.svg';
import resumeSvg from '../style/icons/resume.svg';

/**
 * The icon of the act: pause.
 */
export const pauseIcon = new LabIcon({
  name: 'jupyter-pause:pause',
  svgstr: pauseSvg
});

/**
 * The icon of the act: resume.
 */
export const resumeIcon = new LabIcon({
  name: 'jupyter-pause:resume',
  svgstr: resumeSvg
});

/**
 * The icon of the state: paused. Also stands for the whole extension.
 */
export const pausedIcon = new LabIcon({
  name: 'jupyter-pause:paused',
  svgstr: pausedSvg
});

/**
 * The icon of any "-ing" state.
 */
export const busyIcon = new LabIcon({
  name: 'jupyter-pause:busy',
  svgstr: busySvg
});
