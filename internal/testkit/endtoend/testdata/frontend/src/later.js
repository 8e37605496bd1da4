import "./later.css"

export default "later"
