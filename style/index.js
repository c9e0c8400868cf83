import './base.css';
import './pausedscreen.css';
