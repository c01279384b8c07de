package testpequin

// Evaluation is a folder of results.
type Evaluation struct {
	Points []Point
	Others []Line
}

// Orders is an evaluation with one stats.json, of five operations and 8,250 transactions, and five
// points that only the CSV files have.
var Orders = Evaluation{
	Points: []Point{{Folder: "2023-02-03-04-05-06", Processes: 24, Clients: 24, Seconds: 30, Counters: map[string]float64{
		"attempts": 17000, "committed": 16500, "abort_rate": 0.125, "abort_rate_honest": 0.125, "total_reads": 90000, "buy_abort_rate": 0.25},
		Operations: []Operation{
			{"buy", 3000, 2.5, 0.0078125}, {"look", 2500, 1.25, 0.00390625}, {"move", 1500, 4, 0.015625}, {"pay", 1000, 3.75, 0.03125}, {"return", 250, 8, 0.0625}}}},
	Others: []Line{{12, 171.36666666666667, 11.017894736842105}, {16, 209.9, 14.333333333333334}, {28, 274.03333333333336, 19.571428571428573},
		{32, 272.7666666666667, 23.09090909090909}, {36, 265.1, 27.714285714285715}},
}

// Ranges is an evaluation with two stats.json. In the second, 30 processes have 25 correct clients.
var Ranges = Evaluation{
	Points: []Point{
		{Folder: "2023-03-04-05-06-07", Processes: 18, Clients: 18, Seconds: 20, Operations: []Operation{{"scan", 4321, 1.5, 0.001953125}}},
		{Folder: "2023-03-04-06-07-08", Processes: 30, Clients: 25, Seconds: 20, Operations: []Operation{{"scan", 7654, 1.75, 0.0009765625}}},
	},
	Others: []Line{{14, 166.15, 5.857142857142857}, {24, 300.65, 5.230769230769231}, {36, 431.9, 5.6923076923076925}, {42, 466.35, 6.363636363636363}},
}
